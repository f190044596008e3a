"""`plan` and `apply`: planning without running, and putting a plan on a model."""

import os

from absl import logging

from tf_regal import errors
from tf_regal.devices import Topology, detection
from tf_regal.graph import models
from tf_regal.hook import planned, planning, session, variables
from tf_regal.plans import Plan, planner
from tf_regal.policy import inference
from tf_regal.rewrite import graphdef, saved_model
from tf_regal.settings import Settings
from tf_regal.tensorboard import writer


def plan(model, *, inputs=None, outputs=None, signature=models.DEFAULT_SIGNATURE, show_progress=False, **settings):
    """Plans a model without running it.

    Args:
        model: a tf.function (traced once, or with an input_signature), ConcreteFunction, path of a SavedModel, GraphDef, CostGraphDef or
            exported OpGraph, a GraphDef proto, or an OpGraph.
        inputs, outputs: tensor names, for a GraphDef (default: its placeholders, and what nothing consumes).
        signature: for a SavedModel.
        show_progress: a progress bar on stderr where the search takes longer than a second.
        **settings: see `tf_regal.settings.Settings`.

    Returns:
        a `Plan`; `plan.pays` says whether it beats the default plan.

    Raises:
        GraphError: the model cannot be read or has nothing to plan. InfeasibleError: nothing was found that fits the devices' memory.
        InvalidArgumentError, TopologyError: a setting is not valid.
    """
    chosen = Settings.make(settings)
    topology = Topology.parse(chosen.topology)
    if chosen.logdir is not None:
        writer.check(chosen.logdir)
    read = models.read(
        model, inputs=inputs, outputs=outputs, signature=signature, batch_size=chosen.batch_size, default_device=topology.names[0],
        move_variables=chosen.move_variables,
    )  # fmt: skip
    if chosen.move_variables and read.kind != "function":
        raise errors.InvalidArgumentError(
            f"move_variables=True is for a tf.function or ConcreteFunction, whose variables are here; model={model!r} is a {read.kind}"
        )
    if read.capture is None:
        made = planner.make_plan(read.graph, topology, chosen, show_progress, inference.proposer(chosen))
    else:
        made = planning.plan_capture(read.capture, topology, chosen, show_progress=show_progress)
    if chosen.logdir is not None:
        try:
            writer.write_plan(made, chosen.logdir)
        except Exception as error:  # the plan is what was asked for
            logging.warning("tf_regal: the plan was not written to logdir=%r: %s", chosen.logdir, error)
    return made


def apply(plan, model, *, inputs=None, outputs=None, signature=models.DEFAULT_SIGNATURE, output=None, batch_size=None):
    """Puts a plan on the model that it was made for.

    Args:
        plan: a `Plan` of the same model (and the same batch_size).
        model: as for `tf_regal.plan`, an OpGraph and a CostGraphDef apart: they cannot run.
        output: directory of the planned SavedModel; needed for a SavedModel and for nothing else.

    Returns:
        the same kind as the model: a ConcreteFunction for a function, a GraphDef for a GraphDef (proto or file), the path `output` for a SavedModel.

    Raises:
        PlanMismatchError: the plan is for another graph, or names devices that are not here (functions only: a SavedModel may be for another machine).
    """
    if not isinstance(plan, Plan):
        raise errors.InvalidArgumentError(f"plan={plan!r} is not a Plan; make one with tf_regal.plan(…) or read one with tf_regal.load_plan(path)")
    if isinstance(model, (str, os.PathLike)) and os.path.isdir(model) and output is None:
        raise errors.InvalidArgumentError("output=None: a planned SavedModel needs a directory to be written to; pass output=…")
    # The fingerprint depends on where arguments and stateful ops are taken to be: where the plan's topology begins.
    read = models.read(
        model, inputs=inputs, outputs=outputs, signature=signature, batch_size=batch_size, default_device=plan.topology.names[0],
        move_variables="all" if plan.variables is not None else False,
    )  # fmt: skip
    if read.capture is None:
        raise errors.GraphError(f"model={model!r} holds costs and edges only: there is nothing that could run as planned")
    if plan.fingerprint == read.graph.fingerprint:
        plan = plan.renamed(read.graph.names)  # a model that is built again has other names
    graphdef.check_fits(read.graph, plan)
    if read.kind == "saved_model":
        saved_model.write(os.fspath(model), signature, read, plan, os.fspath(output))
        return os.fspath(output)
    if read.kind == "graph_def":
        return graphdef.applied_graph_def(read.capture, plan, read.graph_def)
    graphdef.check_devices(plan, detection.visible_devices())
    variables.check_moved(read.capture, plan)
    copy = session.copy_concrete(read.concrete)
    planned.apply_plan(copy, read.capture, plan, session.report_list())
    return copy
