"""The HTML file and the front end's sources."""

import base64
import json
import re

import pytest

from tf_regal import cli
from tf_regal.views import archive, chunks, measured, page, picture, summary

from .plans_for_views import HOSTILE, plan_of

SOURCES = {path.name: path.read_text(encoding="utf-8") for path in page.static_files().iterdir() if path.name.endswith((".js", ".css"))}


@pytest.fixture(scope="module")
def text():
    plan = plan_of(hostile=True)
    return page.html(chunks.chunks(plan), summary.of_plan(plan, "plan", function=HOSTILE[0]))


def test_holds_every_piece_of_the_plan(text):
    content = json.loads(re.search(r'<script type="application/json" id="tf-regal-data">(.*?)</script>', text, re.DOTALL).group(1))
    pieces = content["pieces"]["plan"]
    expected = chunks.chunks(plan_of(hostile=True))
    assert {name: base64.b64decode(piece) for name, piece in pieces.items()} == expected
    assert content["plans"][0]["function"] == HOSTILE[0]


def test_names_are_data_and_never_markup(text):
    for name in HOSTILE[:2]:
        assert name not in text
    assert text.count("<script") == text.count("</script>") == 2


def test_nothing_comes_from_outside(text):
    # The name space of SVG or a comment would be harmless, but there is none.
    assert not re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", page.script())
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", text.partition("<script")[0])
    assert "default-src 'none'" in text


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_sources_build_no_markup_and_run_no_text(name):
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http://", "https://", "@import"):
        assert forbidden not in SOURCES[name], f"{name} has {forbidden}"


def test_every_module_is_in_the_page_after_what_it_imports():
    assert set(page.MODULES) | {"main.js"} == {name for name in SOURCES if name.endswith(".js")}
    for i, name in enumerate(page.MODULES):
        assert set(re.findall(r'from "\./([a-z]+\.js)"', SOURCES[name])) <= set(page.MODULES[:i]), name


def test_picture(tmp_path):
    pytest.importorskip("matplotlib")
    picture.save(plan_of(), tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    picture.save(plan_of(topology="2xCPU", objective="peak_memory"), tmp_path / "plan.svg")
    svg = (tmp_path / "plan.svg").read_text(encoding="utf-8")
    assert "planned: " in svg
    assert "default: " in svg


def test_picture_in_a_format_that_nobody_knows(tmp_path):
    pytest.importorskip("matplotlib")
    from tf_regal import errors

    with pytest.raises(errors.InvalidArgumentError, match=r"plan\.gif.*\.png, \.svg or \.pdf"):
        picture.save(plan_of(), tmp_path / "plan.gif")


@pytest.fixture
def in_logdir(tmp_path):
    """A plan's file and its pieces as they are in a log directory, with a recorded call."""
    plan = plan_of()
    events = {plan.topology.names[0].partition("/device")[0]: [(plan.ops[3], 100, 400)]}
    pieces = chunks.chunks(plan, measured.from_events(plan, events, began_ns=0, step_ns=1000))
    plan.save(tmp_path / "x.plan.json")
    (tmp_path / "x.view.zip").write_bytes(archive.pack(pieces))
    return tmp_path / "x.plan.json", plan, pieces


def test_pieces_beside_a_plan(in_logdir, tmp_path):
    path, plan, pieces = in_logdir
    assert archive.beside(path, plan.fingerprint) == pieces
    assert archive.beside(path, "of another plan") is None
    assert archive.beside(tmp_path / "plan.json", plan.fingerprint) is None
    assert archive.beside(tmp_path / "y.plan.json", plan.fingerprint) is None


def test_damaged_pieces_beside_a_plan_do_not_count(in_logdir, tmp_path):
    path, plan, pieces = in_logdir
    whole = (tmp_path / "x.view.zip").read_bytes()
    no_object, incomplete = (archive.pack(pieces | {"overview.json": b"[]"}), archive.pack({k: v for k, v in pieces.items() if k != "graph.bin"}))
    for damaged in (b"", whole[:-100], b"PK" + b"\0" * 100, whole.replace(b"version", b"VERSION"), no_object, incomplete):
        (tmp_path / "x.view.zip").write_bytes(damaged)
        assert archive.beside(path, plan.fingerprint) is None


def test_more_than_pieces_is_not_read(in_logdir, tmp_path, monkeypatch):
    path, plan, pieces = in_logdir
    (tmp_path / "x.view.zip").write_bytes(archive.pack(pieces | {"junk": b"0" * 1000}))
    assert archive.beside(path, plan.fingerprint) == pieces
    monkeypatch.setattr(archive, "MAX_PIECE", 1000)
    assert archive.beside(path, plan.fingerprint) is None


def test_the_page_of_a_plan_of_a_log_directory_has_what_was_measured(in_logdir, tmp_path):
    path, _, _ = in_logdir
    assert cli.main(["show", str(path), "--html", str(tmp_path / "x.html")]) == 0
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    content = json.loads(re.search(r'<script type="application/json" id="tf-regal-data">(.*?)</script>', text, re.DOTALL).group(1))
    overview = json.loads(base64.b64decode(content["pieces"]["plan"]["overview.json"]))
    assert overview["measured"]["step_ns"] == 1000
    assert "measured.bin" in content["pieces"]["plan"]
