"""The short texts that name a topology: "2xA100-40GB@PCIe4", "1xCPU+2xT4", "paper", "local", "cluster.json"."""

import dataclasses
import os
import re

from tf_regal.devices import catalogue, checks
from tf_regal.devices.spec import FREE_LINK, device_name
from tf_regal.devices.topology import MAX_DEVICES, Topology
from tf_regal.errors import TopologyError

_PART = re.compile(r"(?:(?P<count>\d+)\s*x\s*)?(?P<model>[a-z][\w.-]*)", re.IGNORECASE | re.ASCII)

_VALID = (
    'valid are "2xA100-40GB" (COUNTxMODEL), mixes "1xCPU+2xT4", a link "2xA100-40GB@PCIe4", "paper", "local", '
    'a device name such as "/job:worker", '
    "a path that ends in .json, or a Topology"
)

_PAPER_MEMORY = 16 * 2**30


def parse(spec):
    """See `Topology.parse`."""
    if isinstance(spec, Topology):
        return spec
    if isinstance(spec, os.PathLike):
        return _load(spec)
    if not isinstance(spec, str):
        raise TopologyError(f"topology={checks.shown(spec)} is of type {type(spec).__name__}: {_VALID}")
    stripped = spec.strip()
    if stripped.lower() == "local":
        return Topology.detect()
    if stripped.lower() == "paper":
        return _paper()
    if stripped.lower().endswith(".json"):
        return _load(stripped)
    if stripped.startswith(("/job:", "/replica:", "/task:", "/device:")):
        return Topology.detect(only=stripped)
    if "/" in stripped or os.sep in stripped:
        raise TopologyError(f"topology={spec!r} looks like a path, but does not end in .json: {_VALID}")
    try:
        return _named(stripped)
    except TopologyError as error:
        raise TopologyError(f"topology={spec!r}: {error}") from None


def _load(path):
    text = os.fspath(path)
    if not isinstance(text, str) or not text.lower().endswith(".json"):
        raise TopologyError(f"topology={path!r} is a path that does not end in .json: {_VALID}")
    return Topology.load(path)


def _paper():
    # The paper does not say how fast its devices are and charges nothing for transfers or launches.
    device = dataclasses.replace(
        catalogue.device_model("A100-40GB"), model="paper", memory=_PAPER_MEMORY, launch_overhead_ns=0
    )
    devices = [device.spec(device_name(device.kind, index)) for index in range(2)]
    return Topology.from_links("paper", devices, lambda source, target: FREE_LINK)


def _named(spec):
    text, *links = spec.split("@")
    if len(links) > 1:
        raise TopologyError(f"one link at most, at the end, holds for all devices; {_VALID}")
    if text.strip().lower() in ("paper", "local"):
        raise TopologyError(f"{text.strip()!r} has links of its own: leave {'@' + links[0]!r} out; {_VALID}")
    parts = [part.strip() for part in text.split("+")]
    models = [model for part in parts for model in _models(part)]
    if len(models) > MAX_DEVICES:
        raise TopologyError(f"that is {len(models)} devices: give 1 to {MAX_DEVICES}")
    every_link = catalogue.link_model(links[0].strip()).link if links else None

    devices, numbers = [], {}
    for model in models:
        index = numbers[model.kind] = numbers.get(model.kind, -1) + 1
        devices.append(model.spec(device_name(model.kind, index)))
    return Topology.from_links(
        spec, devices, lambda source, target: every_link or catalogue.default_link(models[source], models[target])
    )


def _models(part):
    match = _PART.fullmatch(part)
    if match is None:
        raise TopologyError(f"{part!r} is not of the form COUNTxMODEL; {_VALID}")
    try:
        model = catalogue.device_model(match["model"])
    except TopologyError as error:
        hint = "" if match["count"] else checks.closest(match["model"], ("paper", "local"))
        raise TopologyError(f"{error}{hint}; or describe the devices in a .json file (Topology.save)") from None
    digits = (match["count"] or "1").lstrip("0")
    if not digits or len(digits) > 3 or int(digits) > MAX_DEVICES:
        raise TopologyError(f"the count {match['count'][:20]!r} is out of range: give 1 to {MAX_DEVICES} devices")
    return [model] * int(digits)
