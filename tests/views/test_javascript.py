"""The front end's logic under Node's test runner (js/*.mjs)."""

import pathlib
import shutil
import subprocess

import pytest

from tf_regal.views import page

# bazel: manual (runs Node)

HERE = pathlib.Path(__file__).resolve().parent / "js"


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed; on Debian: apt-get install nodejs")
def test_javascript(tmp_path):
    # Modules of a folder without a package.json are taken for scripts: copies with a package.json beside them are not.
    for name in page.MODULES:
        (tmp_path / name).write_text((page.static_files() / name).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    for test in HERE.glob("*.mjs"):
        shutil.copy(test, tmp_path)
    done = subprocess.run(["node", "--test", "."], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout or "fail 0" in done.stdout
