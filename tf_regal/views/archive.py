"""The file with a plan's pieces that lies beside the plan in a log directory: ID.view.zip beside ID.plan.json."""

import io
import json
import lzma
import pathlib
import zipfile
import zlib

from tf_regal.views import chunks

PIECES = ("overview.json", "names.json", "graph.bin", "planned.bin", "default.bin", "measured.bin")
MAX_PIECE = 256 << 20
"""Bytes of a piece that is read: files may be anybody's."""

PLAN, VIEW = ".plan.json", ".view.zip"
"""Endings of the plan's file and of the one with its pieces."""

DAMAGED = (OSError, ValueError, TypeError, RuntimeError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
"""What reading a damaged file may raise."""


def pack(pieces):
    """The file's content. pieces: as of `chunks.chunks`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("version", str(chunks.VERSION))
        for name, content in pieces.items():
            archive.writestr(name, content)
    return packed.getvalue()


def version_of(archive):
    """The format that an open file has, int."""
    with archive.open("version") as file:  # no more of it, whatever its size
        return int(file.read(20))


def beside(path, fingerprint):
    """The pieces that lie beside a plan's file, with what was measured; None where there are none, or where they are of another plan or version."""
    path = pathlib.Path(path)
    if not path.name.endswith(PLAN):
        return None
    try:
        with zipfile.ZipFile(path.with_name(path.name.removesuffix(PLAN) + VIEW)) as archive:
            if version_of(archive) != chunks.VERSION:
                return None
            known = [name for name in PIECES if name in archive.namelist()]
            if any(archive.getinfo(name).file_size > MAX_PIECE for name in known):
                return None
            pieces = {name: archive.read(name) for name in known}
        overview = json.loads(pieces["overview.json"])
        needed = {"names.json", "graph.bin", *(f"{schedule}.bin" for schedule in overview["schedules"])}
        return pieces if overview["fingerprint"] == fingerprint and needed <= set(pieces) else None
    except DAMAGED:
        return None
