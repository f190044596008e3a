"""What the third-party cases call by name: tf_regal with planning forced, whether it pays or not."""

import tf_regal

FORCED = {"min_ops": 1, "apply": "always", "topology": "local", "evaluations": 300, "cache_dir": False}


def optimize(fn):
    return tf_regal.optimize(fn, **FORCED)


def enable():
    tf_regal.enable(**FORCED)


def graph_def(definition, inputs, outputs):
    plan = tf_regal.plan(definition, inputs=inputs, outputs=outputs, **FORCED)
    return tf_regal.apply(plan, definition, inputs=inputs, outputs=outputs)


def saved_model(source, target):
    tf_regal.apply(tf_regal.plan(source, **FORCED), source, output=target)
