"""Same SavedModel: what was planned is saved by TensorFlow and loaded without tf_regal, on fewer devices too."""

import tensorflow as tf
from tf_setup import run_python

from .hooked import to_numpy

SAVED = (
    "plain function", "tf.Module with a training step", "map_fn, scan, vectorized_map", "while loop with TensorArrays", "conds and cases",
    "lookup tables and assets",
)


def applies(program):
    return program.name in SAVED


def test_saved_model(kind, planned, cell, tmp_path):
    def act(instance):
        instance.step(0)
        want = instance.module.serve(*instance.serve_args)
        tf.saved_model.save(instance.module, str(tmp_path / "m"))
        for n, arg in enumerate(instance.serve_args):
            (tmp_path / f"arg{n}").write_bytes(tf.io.serialize_tensor(arg).numpy())
        return want, [arg.dtype.name for arg in instance.serve_args]

    want, dtypes = planned(act)
    run_python(
        """
        folder, *dtypes = sys.argv[1:]
        loaded = tf.saved_model.load(folder + "/m")
        args = [tf.io.parse_tensor(open(f"{folder}/arg{n}", "rb").read(), dtype) for n, dtype in enumerate(dtypes)]
        results = tf.nest.flatten(loaded.serve(*args))
        assert "tf_regal" not in sys.modules
        for n, result in enumerate(results):
            open(f"{folder}/result{n}", "wb").write(tf.io.serialize_tensor(result).numpy())
        """,
        tmp_path, *dtypes, devices=2 if kind.name == SAVED[0] else 1,
    )
    got = [tf.io.parse_tensor((tmp_path / f"result{n}").read_bytes(), w.dtype) for n, w in enumerate(tf.nest.flatten(want))]
    assert to_numpy(got) == to_numpy(want)
    cell()
