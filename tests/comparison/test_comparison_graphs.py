"""Which graphs are meant."""

import json

import pytest

from tf_regal import errors
from tf_regal.comparison import graphs


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


def names(*arguments):
    return [file.name for file in graphs.expand([str(a) for a in arguments])[0]]


def test_files_and_directories(tmp_path):
    touch(tmp_path, "b.json", "a.json.xz", "c.pb", "d.pbtxt", "notes.txt", "saved/saved_model.pb", "other/readme")
    assert names(tmp_path) == ["a", "b", "c", "d", "saved"]
    assert names(tmp_path / "c.pb", tmp_path / "saved") == ["c", "saved"]
    assert names(tmp_path / "b.json", tmp_path) == ["b", "a", "c", "d", "saved"]  # each once
    files, notes = graphs.expand([tmp_path])
    assert [file.is_exported for file in files] == [True, True, False, False, False]
    assert not notes


def test_names_are_unique(tmp_path):
    touch(tmp_path, "x/g.json", "y/g.json", "y/h.json")
    assert names(tmp_path / "x", tmp_path / "y") == [str(tmp_path / "x/g.json"), str(tmp_path / "y/g.json"), "h"]


def test_batch_sizes_of_a_model_are_one_group(tmp_path):
    touch(tmp_path, "m-training-b1.json", "m-training-b16.json.xz", "m-inference-b1.json", "n-b.json")
    assert {file.name: file.group for file in graphs.expand([tmp_path])[0]} == {
        "m-training-b1": "m-training", "m-training-b16": "m-training", "m-inference-b1": "m-inference", "n-b": "n-b",
    }  # fmt: skip


def split(folder, table):
    (folder / "split.json").write_text(json.dumps(table) if not isinstance(table, str) else table)
    return folder / "split.json"


def test_splits(tmp_path):
    path = split(tmp_path, {"about": "text", "train": {"f": ["m"]}, "test": {"f": ["m2", "m2-x", "gone"], "g": ["n"]}})
    stored = ("m-training-b1", "m2-training-b16", "m2-training-b2", "m2-x-inference-b1", "n-training-b1")
    touch(tmp_path / "graphs", *(f"{name}.json.xz" for name in stored))
    assert names(f"{path}:test") == ["m2-training-b2", "m2-training-b16", "m2-x-inference-b1", "n-training-b1"]
    _, notes = graphs.expand([f"{path}:test"])
    assert len(notes) == 1
    assert notes[0].startswith("1 models of") and notes[0].endswith(": gone")


@pytest.mark.parametrize(
    ("name", "table", "message"),
    [
        ("tset", {"test": {}, "train": {}}, "there is no such split; it has 'test', 'train'"),
        ("test", {"test": {"f": ["m"]}}, "has none of its graphs; build them first"),
        ("test", "{", "is not a split of a benchmark set"),
        ("test", [1], "is not a split of a benchmark set"),
    ],
)
def test_splits_that_are_none(tmp_path, name, table, message):
    with pytest.raises(errors.GraphError, match=message):
        graphs.expand([f"{split(tmp_path, table)}:{name}"])


def test_what_is_not_there(tmp_path):
    with pytest.raises(errors.GraphError, match=r"there is no such file or directory\. Give a file that"):
        graphs.expand([tmp_path / "nothing.json"])
    with pytest.raises(errors.GraphError, match="there is no such file or directory"):
        graphs.expand([f"{tmp_path}/nothing.json:test"])
    with pytest.raises(errors.GraphError, match="the directory has no graph in it"):
        graphs.expand([tmp_path])
