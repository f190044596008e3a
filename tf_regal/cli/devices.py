"""`tf-regal devices`: what TensorFlow sees here and what can be named, or the devices and links of one topology."""

import math

from tf_regal import devices
from tf_regal.cli import options, output, startup
from tf_regal.devices import spec

_EPILOG = """\
examples:
  tf-regal devices                        what TensorFlow sees here, and the catalogue
  tf-regal devices 2xA100-40GB@PCIe4      two A100s that are joined by PCIe 4
  tf-regal devices cluster.json           a topology file
"""


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "devices",
        help="list the devices that are here and those that can be named",
        description="Without an argument: the devices that TensorFlow sees in this process, and the catalogue of "
        "devices and links that can be named in --topology. With one: that topology's devices and links.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "topology",
        metavar="TOPOLOGY",
        nargs="?",
        help='such as "local", "2xA100-40GB", "1xCPU+2xT4", "paper", or a .json file',
    )
    parser.add_argument(
        "--memory-limit",
        metavar="BYTES",
        type=options.byte_count,
        help="with TOPOLOGY: replaces the memory of every device: 16GiB, 500MB",
    )
    options.add_output(parser)
    return parser


def run(args):
    if args.topology is None:
        if args.memory_limit is not None:
            args.parser.error(
                "argument --memory-limit: it needs a TOPOLOGY, such as `tf-regal devices local --memory-limit 500MB`"
            )
        startup.load_tensorflow()
        here = devices.Topology.detect()
        if args.json:
            output.print_json(
                {"here": here.to_json(), "catalogue": {"devices": _device_models(), "links": _link_models()}}
            )
        else:
            output.print_text("\n\n".join([_topology_text(here, "here"), _catalogue_text()]))
        return 0
    topology = options.topology(args)
    if args.json:
        output.print_json(topology.to_json())
    else:
        output.print_text(_topology_text(topology, topology.name))
    return 0


def _topology_text(topology, title):
    called = spec.short_names(topology.names)
    rows = [(title, "model", "peak", "bandwidth", "lanes", "memory", "overhead per op")]
    for device in topology.devices:
        rows.append(
            (
                called[device.name],
                device.model,
                *_figures(device),
                str(device.lanes),
                _memory(device.memory),
                f"{device.launch_overhead_ns} ns",
            )
        )
    parts = [output.table(rows, left=2)]
    if topology.n_devices > 1:
        rows = [("link", "latency", "bandwidth")]
        for i, j, link in _links(topology):
            rows.append(
                (
                    f"{called[topology.names[i]]} -> {called[topology.names[j]]}",
                    output.time_text(link.latency_ns / 1e9),
                    _bandwidth(link),
                )
            )
        if len({row[1:] for row in rows[1:]}) == 1:
            rows[1:] = [("between any two", *rows[1][1:])]
        parts.append(output.table(rows))
        parts.append(
            "  A transfer occupies both its devices."
            if topology.blocking_transfers
            else "  Transfers overlap with ops."
        )
    return "\n\n".join(parts)


def _links(topology):
    indices = range(topology.n_devices)
    return [(i, j, topology.link(i, j)) for i in indices for j in indices if i != j]


def _catalogue_text():
    models = [("can be named", "kind", "peak", "bandwidth", "memory", "overhead per op", "joined by", "host link")]
    for model in devices.device_models():
        models.append(
            (
                model.model,
                model.kind,
                *_figures(model),
                _memory(model.memory),
                f"{model.launch_overhead_ns} ns",
                model.peer_link,
                model.host_link,
            )
        )
    links = [("links", "latency", "bandwidth")]
    for entry in devices.link_models():
        links.append((entry.name, output.time_text(entry.link.latency_ns / 1e9), _bandwidth(entry.link)))
    use = (
        '  Name them in --topology: "2xA100-40GB", "1xCPU+2xT4", "2xA100-40GB@PCIe4" (one link for all), "paper".\n'
        "  Peaks are for float32 products as TensorFlow runs them; link bandwidths are one way. --json adds sources."
    )
    return "\n\n".join([output.table(models, left=2), output.table(links), use])


def _figures(device):
    return output.rate_text(device.flops, "FLOP/s"), output.rate_text(device.bandwidth, "B/s")


def _memory(count):
    """Memory as data sheets say it: in GiB."""
    return "unlimited" if count is None else f"{count / 2**30:.4g} GiB"


def _bandwidth(link):
    return output.rate_text(None if math.isinf(link.bandwidth) else link.bandwidth, "B/s")


def _device_models():
    names = (
        "model",
        "kind",
        "flops",
        "bandwidth",
        "memory",
        "lanes",
        "launch_overhead_ns",
        "peer_link",
        "host_link",
        "source",
    )
    return [{name: getattr(model, name) for name in names} for model in devices.device_models()]


def _link_models():
    return [
        {
            "name": entry.name,
            "latency_ns": entry.link.latency_ns,
            "bandwidth": None if math.isinf(entry.link.bandwidth) else entry.link.bandwidth,
            "source": entry.source,
        }
        for entry in devices.link_models()
    ]
