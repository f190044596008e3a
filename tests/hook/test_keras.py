"""Keras 3 and tf_keras: fit, evaluate and predict are planned and give what they give without."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys

import numpy as np
import tensorflow as tf

import tf_regal

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
tf.config.experimental.enable_op_determinism()
if sys.argv[1] == "keras":
    keras, compiled = tf.keras, {"jit_compile": False}
else:
    import tf_keras as keras
    compiled = {}
keras.utils.set_random_seed(1)
image = keras.Input((16,))
branches = [keras.layers.Dense(32, activation="relu")(keras.layers.Dense(32, activation="tanh")(image)) for _ in range(3)]
model = keras.Model(image, keras.layers.Dense(3)(keras.layers.Concatenate()(branches)))
model.compile("sgd", "mse", **compiled)
rng = np.random.default_rng(1)
x, y = rng.random((20, 16), np.float32), rng.random((20, 3), np.float32)
start = model.get_weights()

def everything():
    model.set_weights(start)
    history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)  # the last batch is smaller: unknown batch dimension
    return history.history["loss"], model.evaluate(x, y, batch_size=8, verbose=0), model.predict(x, batch_size=8, verbose=0), model.get_weights()

plain = everything()
with tf_regal.enable(min_ops=1, apply="always", topology="local", on_error="raise", cache_dir=False, evaluations=200):
    model.compile("sgd", "mse", **compiled)
    planned = everything()
for a, b in zip(plain[3], planned[3]):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
np.testing.assert_allclose(plain[0], planned[0], rtol=1e-5)
np.testing.assert_allclose(plain[1], planned[1], rtol=1e-5)
np.testing.assert_allclose(plain[2], planned[2], rtol=1e-5, atol=1e-6)
reports = [r for r in tf_regal.reports() if r.status == "planned"]
assert len(reports) >= 3, [str(r) for r in tf_regal.reports()]
for report in reports:
    assert report.applied.ops_on_planned_device == report.applied.ops_planned, str(report)
assert any("dimension 0 = 32 (a default; pass batch_size=" in note for r in reports for note in r.plan.notes) or sys.argv[1] != "keras"
print("equal")
"""


@pytest.mark.slow
@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_fit_evaluate_predict(package, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    run = subprocess.run([sys.executable, str(tmp_path / "program.py"), package], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.splitlines()[-1] == "equal"
