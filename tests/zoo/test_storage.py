"""OpGraphs in files, plain and compressed."""

import json
import lzma

import pytest

import tf_regal
from benchmarks.zoo import synthetic
from tf_regal import errors
from tf_regal.graph import OpGraph

GRAPH = synthetic.generate("barabasi_albert", 30, 3)


@pytest.mark.parametrize("name", ["g.json", "g.json.xz"])
def test_saved_graph_is_read_back_and_planned(tmp_path, name):
    GRAPH.save(tmp_path / name)
    again = OpGraph.load(tmp_path / name)
    assert again.to_json() == GRAPH.to_json()
    plan = tf_regal.plan(str(tmp_path / name), topology="paper", evaluations=50, cache_dir=False)
    assert set(plan.placement) == set(GRAPH.names)


def test_equal_graphs_give_equal_bytes(tmp_path):
    for name in ("a.json.xz", "b.json.xz"):
        synthetic.generate("barabasi_albert", 30, 3).save(tmp_path / name)
    assert (tmp_path / "a.json.xz").read_bytes() == (tmp_path / "b.json.xz").read_bytes()


def test_compressed_file_is_xz_of_the_json(tmp_path):
    GRAPH.save(tmp_path / "g.json.xz")
    assert json.loads(lzma.decompress((tmp_path / "g.json.xz").read_bytes())) == GRAPH.to_json()


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("g.json.xz", b"{}", "is not xz data"), ("g.json.xz", b"", "is not xz data"), ("g.json.xz", lzma.compress(b"{}")[:-9], "is not xz data"),
        ("g.json.xz", lzma.compress(b"{"), "is not JSON"), ("g.json.xz", lzma.compress(b"\xff\xfe"), "is not JSON"),
        ("g.json.xz", lzma.compress(b"[]"), "not an exported OpGraph"), ("g.json", b"[" * 200_000, "is not JSON"), ("g.json", b"", "is not JSON"),
    ],
)
def test_damaged_file(tmp_path, name, content, text):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(errors.GraphError, match=text):
        OpGraph.load(tmp_path / name)
    with pytest.raises(errors.GraphError, match=rf"model='.*{name}': .*{text}"):
        tf_regal.plan(str(tmp_path / name), topology="paper", cache_dir=False)
