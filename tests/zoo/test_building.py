"""Building: the registry is what the split lists, and the same model gives the same bytes in any process."""

import os
import subprocess
import sys

import pytest

from benchmarks import zoo

from . import conftest

PRELUDE = f"""
import sys, types
package = types.ModuleType("benchmarks"); package.__path__ = [{str(conftest.BENCHMARKS)!r}]; sys.modules["benchmarks"] = package
"""


def run(code, *args, **environment):
    fixed = {"PYTHONHASHSEED": "0", "TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code, *map(str, args)], capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, **fixed, **environment},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_registry_is_what_the_split_lists():
    from benchmarks.zoo import families

    listed = {f: sorted(models) for split in zoo.split_table().values() for f, models in split.items()}
    assert {f: sorted(m.name for m in models) for f, models in families.FAMILIES.items()} == listed
    assert len(families.MODELS) == sum(map(len, listed.values()))
    for model in families.MODELS.values():
        stored = {name for mode in zoo.MODES for name in (f"{model.name}-{mode}-b{batch}" for batch in model.batches(mode))}
        assert stored == {name for name in zoo.names() if zoo.info(name).model == model.name}


def test_every_application_family_is_there():
    from benchmarks.zoo import families

    wanted = {"convnext", "densenet", "efficientnet", "inception", "mobilenet", "nasnet", "resnet", "vgg", "xception"}
    assert wanted <= set(families.FAMILIES)


def test_nothing_is_built_where_everything_is_there(capsys):
    from benchmarks.zoo.__main__ import main

    assert main(["build", "vgg", "unet"]) == 0
    assert capsys.readouterr().out == "5 of 5 models are there\n"


@pytest.mark.parametrize(
    ("arguments", "text"), [(["nothing"], "'nothing' is no model or family; there are"), (["--jobs", "0"], "--jobs=0: expected 1 or more")]
)
def test_bad_arguments(capsys, arguments, text):
    from benchmarks.zoo.__main__ import main

    assert main(["build", *arguments]) == 2
    assert text in capsys.readouterr().err


BUILD_TWO = """
from benchmarks.zoo import capture, families
for text in sys.argv[2:]:
    name, mode, batch = text.split(":")
    capture.capture(families.MODELS[name], mode, int(batch)).save(f"{sys.argv[1]}/{name}-{mode}-b{batch}.json.xz")
"""


@pytest.mark.slow
def test_same_bytes_in_two_processes_and_after_other_models(tmp_path):
    """…and the content that is stored, which was built on another day."""
    wanted = ["conv-vae:training:16", "dcgan:training:32", "bilstm-tagger:inference:1", "mmoe:training:256"]
    alone, together = tmp_path / "alone", tmp_path / "together"
    alone.mkdir()
    together.mkdir()
    for text in wanted[:2]:
        run(BUILD_TWO, alone, text, PYTHONHASHSEED="1")
    run(BUILD_TWO, together, *wanted[::-1], PYTHONHASHSEED="2")
    for file in together.iterdir():
        if (alone / file.name).exists():
            assert file.read_bytes() == (alone / file.name).read_bytes(), file.name
        assert zoo.OpGraph.load(file).to_json() == zoo.load(file.name.removesuffix(".json.xz")).to_json(), file.name
    assert len(list(alone.iterdir())) == 2
