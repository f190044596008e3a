"""Runs one training in two fresh processes, plain and planned, on two logical CPU devices each, and compares them to the bit.

Fresh processes, since within one process a second model gets other layer names, and with them TensorFlow another order of some sums.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# oneDNN fuses kernels after placement, where both are on one device: that decides the last bit of some gradients.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import hashlib
import json
import subprocess
import sys

import numpy as np
import tensorflow as tf

import tf_regal


def child(train, mode):
    """Trains and prints one line of JSON: losses, a hash of all weights, and what tf-regal did."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    tf.config.experimental.enable_op_determinism()
    if mode == "planned":
        tf_regal.enable(topology="local", objective="runtime")
    losses, weights = train()
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(w).tobytes() for w in weights)).hexdigest()
    planned = [r for r in tf_regal.reports() if r.status == "planned"]
    print(
        json.dumps(
            {
                "losses": [float(x) for x in losses],
                "n_weights": len(weights),
                "weights_sha256": digest,
                "reports": [str(r) for r in planned],
                "complete": all(r.applied is not None and r.applied.ops_on_planned_device == r.applied.ops_planned for r in planned),
                "ops_per_device": [{device: len(ops) for device, ops in r.plan.order.items()} for r in planned],
            }
        )
    )
    return 0


def compare(script):
    """Returns 0 where both runs are equal, a function was planned, its ops are on both devices and all where the plan says."""
    results = {}
    for mode in ("plain", "planned"):
        run = subprocess.run([sys.executable, script, "--run", mode], capture_output=True, text=True, check=False)
        if run.returncode:
            sys.stderr.write(run.stderr)
            return 1
        results[mode] = json.loads(run.stdout.splitlines()[-1])
    plain, planned = results["plain"], results["planned"]
    for report, counts in zip(planned["reports"], planned["ops_per_device"], strict=True):
        print(report)
        for device, count in counts.items():
            print(f"  {device}: {count} ops")
    equal = all(plain[key] == planned[key] for key in ("losses", "weights_sha256"))
    print(f"losses: {', '.join(f'{x:.6f}' for x in planned['losses'])}")
    print(f"losses and all {plain['n_weights']} weights bitwise equal to the plain run's: {equal}")
    both = any(all(counts.values()) and len(counts) > 1 for counts in planned["ops_per_device"])
    return 0 if equal and both and planned["complete"] else 1
