"""Topologies as JSON: a dict of schema 1, and files."""

import json
import math
import os
import pathlib

from tf_regal.devices import checks
from tf_regal.devices.spec import DeviceSpec
from tf_regal.devices.topology import Topology
from tf_regal.errors import TopologyError

SCHEMA = 1

_KEYS = {"required": ("schema", "name", "devices", "links"), "optional": ("blocking_transfers",)}
_DEVICE_KEYS = {
    "required": ("name", "model", "kind", "flops", "bandwidth"),
    "optional": ("lanes", "memory", "launch_overhead_ns"),
}
_LINK_KEYS = {"required": ("latency_ns", "bandwidth"), "optional": ()}

_TEMPLATE = 'Topology.parse("2xA100-40GB").save(path) writes a file to start from'


def to_json(topology):
    """See `Topology.to_json`."""
    return {
        "schema": SCHEMA,
        "name": topology.name,
        "blocking_transfers": topology.blocking_transfers,
        "devices": [
            {
                "name": device.name,
                "model": device.model,
                "kind": device.kind,
                "lanes": device.lanes,
                "flops": device.flops,
                "bandwidth": device.bandwidth,
                "memory": device.memory,
                "launch_overhead_ns": device.launch_overhead_ns,
            }
            for device in topology.devices
        ],
        "links": {
            "latency_ns": [list(row) for row in topology.latency_ns],
            "bandwidth": [[None if math.isinf(value) else value for value in row] for row in topology.bandwidth],
        },
    }


def from_json(document, source=None):
    """See `Topology.from_json`; `source` is what to call the document in errors."""
    label = f"topology={checks.shown(document) if source is None else repr(source)}"
    try:
        return _topology(document)
    except TopologyError as error:
        raise TopologyError(f"{label}: {error}") from None


def save(topology, path):
    """See `Topology.save`."""
    document = to_json(topology)
    devices, links = document.pop("devices"), document.pop("links")
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in document.items()]
    lines.append('  "devices": ' + _rows(devices, "  "))
    matrices = [f"    {json.dumps(key)}: {_rows(matrix, '    ')}" for key, matrix in links.items()]
    lines.append('  "links": {\n' + ",\n".join(matrices) + "\n  }")
    try:
        pathlib.Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    except OSError as error:
        raise TopologyError(
            f"path={os.fspath(path)!r} cannot be written ({error.strerror}): give a file in a folder that exists"
        ) from error


def _rows(rows, indent):
    return "[\n" + ",\n".join(f"{indent}  {json.dumps(row, allow_nan=False)}" for row in rows) + f"\n{indent}]"


def load(path):
    """See `Topology.load`."""
    shown = os.fspath(path)
    try:
        document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise TopologyError(
            f"topology={shown!r} cannot be read ({error.strerror}): give the path of a topology file; {_TEMPLATE}"
        ) from error
    except UnicodeDecodeError as error:
        raise TopologyError(f"topology={shown!r} is not UTF-8 text ({error.reason}): {_TEMPLATE}") from error
    except json.JSONDecodeError as error:
        raise TopologyError(
            f"topology={shown!r} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}; "
            f"mend that line, or: {_TEMPLATE}"
        ) from error
    except RecursionError as error:
        raise TopologyError(f"topology={shown!r} is nested too deeply: {_TEMPLATE}") from error
    except ValueError as error:  # a name that no file can have, or a number of thousands of digits
        raise TopologyError(f"topology={shown!r} cannot be read ({error}): give the path of a topology file; {_TEMPLATE}") from error
    return from_json(document, source=shown)


def _topology(document):
    # The schema comes first: a newer one may well have other keys.
    if isinstance(document, dict) and "schema" in document and document["schema"] != SCHEMA:
        raise TopologyError(
            f"schema={checks.shown(document['schema'])}: this version reads schema {SCHEMA}; save the topology again"
        )
    _check_keys("the topology", document, _KEYS)
    if not isinstance(document["devices"], list):
        raise TopologyError(f"devices={checks.shown(document['devices'])} is not a list of objects")
    devices = []
    for index, entry in enumerate(document["devices"]):
        _check_keys(f"devices[{index}]", entry, _DEVICE_KEYS)
        try:
            devices.append(DeviceSpec(**entry))
        except TopologyError as error:
            raise TopologyError(f"devices[{index}].{error}") from None
    links = document["links"]
    _check_keys("links", links, _LINK_KEYS)
    try:
        return Topology(
            name=document["name"],
            devices=devices,
            latency_ns=links["latency_ns"],
            bandwidth=_with_infinity(links["bandwidth"]),
            blocking_transfers=document.get("blocking_transfers", False),
        )
    except TopologyError as error:
        in_links = str(error).startswith(("latency_ns", "bandwidth"))
        raise TopologyError(f"{'links.' if in_links else ''}{error}") from None


def _with_infinity(matrix):
    if not isinstance(matrix, list):
        return matrix
    return [[math.inf if value is None else value for value in row] if isinstance(row, list) else row for row in matrix]


def _check_keys(what, entry, keys):
    if not isinstance(entry, dict):
        raise TopologyError(f"{what} is {checks.shown(entry)}, not an object: {_TEMPLATE}")
    known = keys["required"] + keys["optional"]
    missing = [key for key in keys["required"] if key not in entry]
    unknown = [key for key in entry if key not in known]
    if unknown:
        hint = checks.closest(str(unknown[0]), known)
        raise TopologyError(f"{what} has the unknown key {unknown[0]!r}: known are {', '.join(known)}{hint}")
    if missing:
        raise TopologyError(
            f"{what} lacks the key {missing[0]!r}: needed are {', '.join(keys['required'])}; {_TEMPLATE}"
        )
