"""What /proc says about a machine: cores, FLOP/s, memory. Read through a function: the machine may be a remote one."""

import dataclasses
import math
import os
import re

# Assumed where /proc does not say (aarch64 lists no frequency; other systems have no /proc).
_DEFAULT_GHZ = 2.5
_DEFAULT_FLOP_PER_CYCLE = 16
# /proc says nothing about memory bandwidth. 12.8 GB/s copied by one core of an EPYC (measured); a socket's channels
# bound what many cores get (8 x DDR4-3200).
_BANDWIDTH_PER_CORE = 12e9
_BANDWIDTH_PER_SOCKET = 204.8e9


@dataclasses.dataclass(frozen=True)
class Host:
    """A machine as one process on it may use it.

    Attributes:
        identity: the same text for two processes on one machine; None: not known.
        model: the processor's name.
        cores: logical cores that the process may use (its affinity), int >= 1.
        flops: FLOP/s, float32, of these cores together.
        bandwidth: bytes/s of these cores together (an estimate).
        memory: bytes, or None: not known.
    """

    identity: str | None
    model: str
    cores: int
    flops: float
    bandwidth: float
    memory: int | None


def read_local(path):
    """The text of a file of this machine, "" if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def local_host():
    """The machine that this process runs on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return describe(read_local, cores)


def describe(read, cores=None):
    """A `Host`, from `read(path) -> str` ("" where there is no such file).

    Args:
        read: gives the text of a file of the machine, as the process on it sees it.
        cores: logical cores that the process may use; None: what /proc/self/status says.
    """
    processors = [_fields(block) for block in re.split(r"\n\s*\n", read("/proc/cpuinfo").strip()) if block.strip()]
    if cores is None:
        allowed = _fields(read("/proc/self/status")).get("Cpus_allowed_list", "")
        cores = _count(allowed) or len(processors) or 1
    first = processors[0] if processors else {}

    # Hyper-threads share their core's FMA units.
    threads_per_core = _number(first.get("siblings"), 1) / _number(first.get("cpu cores"), 1)
    busy = min(cores, _quota(read("/sys/fs/cgroup/cpu.max")))
    physical = max(busy / max(threads_per_core, 1), 0.1)

    return Host(
        identity=read("/proc/sys/kernel/random/boot_id").strip() or None,
        model=re.sub(r"\s+", " ", first.get("model name", "")).strip() or "CPU",
        cores=cores,
        flops=physical * _ghz(processors) * 1e9 * _flop_per_cycle(first),
        bandwidth=min(physical * _BANDWIDTH_PER_CORE, _BANDWIDTH_PER_SOCKET),
        memory=_memory(read),
    )


def _fields(block):
    """{"cpu MHz": "2445.402", …} of lines "cpu MHz : 2445.402"."""
    pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _number(text, default):
    try:
        return float(text)
    except (TypeError, ValueError):
        return default


def _count(ranges):
    """Number of cores in "0-3,8"."""
    total = 0
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", ranges):
        total += int(last or first) - int(first) + 1
    return total


def _ghz(processors):
    """Nominal frequency. x86's bogomips are twice that, and unlike "cpu MHz" the same at every look."""
    nominal = max((_number(processor.get("bogomips"), 0) / 2 for processor in processors), default=0)
    present = max((_number(processor.get("cpu MHz"), 0) for processor in processors), default=0)
    return round((nominal or present) / 1000, 2) or _DEFAULT_GHZ


def _flop_per_cycle(processor):
    """float32 operations per cycle of a core: units x width x 2 (a fused multiply-add is two)."""
    flags = set(processor.get("flags", processor.get("Features", "")).split())
    if "avx512f" in flags:
        # AMD's first cores with AVX-512 (family 25, Zen 4) have units of 256 bits; Intel's servers have two of 512.
        narrow = processor.get("vendor_id") == "AuthenticAMD" and _number(processor.get("cpu family"), 0) < 26
        return 32 if narrow else 64
    if {"avx2", "fma"} <= flags:
        return 32
    if "avx" in flags:
        return 16
    if "sse2" in flags:
        return 8
    return _DEFAULT_FLOP_PER_CYCLE  # also aarch64: two units of 128 bits


def _quota(text):
    """Cores that the control group grants ("200000 100000": 2.0), math.inf without a limit."""
    numbers = text.split()
    if len(numbers) != 2 or not _number(numbers[0], 0) or not _number(numbers[1], 0):
        return math.inf
    return float(numbers[0]) / float(numbers[1])


def _memory(read):
    """Bytes: the machine's memory, or the control group's limit if that is lower."""
    total = _fields(read("/proc/meminfo")).get("MemTotal", "").split()
    limits = [int(total[0]) * 1024] if total and total[0].isdigit() else []
    group = read("/sys/fs/cgroup/memory.max").strip()
    if group.isdigit() and int(group) > 0:
        limits.append(int(group))
    return min(limits, default=None)
