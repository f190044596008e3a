"""What the device's allocator makes of a schedule: TensorFlow's best-fit-with-coalescing allocator, replayed.

The simulator counts the bytes that kernels ask for. TensorFlow's BFC allocator (GPUs, and CPUs with oneDNN) hands out chunks: sizes are
rounded up to 256 bytes, and a free chunk is split only where it is at least twice as large as what was asked for. `get_memory_info` and
out-of-memory errors count chunks: on an InceptionV3 training step 200 to 210 MB where kernels asked for 180.

The rules are those of tensorflow/core/common_runtime/bfc_allocator.cc as of 2.21.
"""

import bisect

ALIGNMENT = 256
_N_BINS = 21
_MAX_FRAGMENTATION = 128 << 20
_FIRST_REGION = 2 << 20
_SMALL_ON_CPU = 256 << 10
"""oneDNN's CPU allocator gives smaller blocks by malloc, and its statistics do not count them (benchmarks/memory.py measures it)."""

_HISTORIES = (0, 1, 2, 3)
_REPEATS = 2


class BfcAllocator:
    """Addresses are integers; regions never touch. `in_use` and `peak` in bytes of chunks."""

    def __init__(self):
        self.in_use = self.peak = 0
        self._next_region = _FIRST_REGION
        self._top = 0
        self._free = [[] for _ in range(_N_BINS)]  # per bin: sorted list of (size, address)
        self._chunks = {}  # address -> [size, is free, previous address or None, next address or None]

    def allocate(self, size):
        """Returns the address of a new chunk for `size` bytes (at least 1)."""
        rounded = -(-size // ALIGNMENT) * ALIGNMENT
        address = self._find(rounded)
        if address is None:
            self._extend(rounded)
            address = self._find(rounded)
        self.in_use += self._chunks[address][0]
        self.peak = max(self.peak, self.in_use)
        return address

    def free(self, address):
        chunk = self._chunks[address]
        self.in_use -= chunk[0]
        chunk[1] = True
        following = chunk[3]
        if following is not None and self._chunks[following][1]:
            self._remove_free(following)
            self._merge(address, following)
        previous = chunk[2]
        if previous is not None and self._chunks[previous][1]:
            self._remove_free(previous)
            self._merge(previous, address)
            address = previous
        self._add_free(address)

    def _find(self, rounded):
        for number in range(_bin(rounded), _N_BINS):
            free = self._free[number]
            at = bisect.bisect_left(free, (rounded, -1))
            if at < len(free):
                size, address = free.pop(at)
                self._chunks[address][1] = False
                if size >= 2 * rounded or size - rounded >= _MAX_FRAGMENTATION:
                    self._split(address, rounded)
                return address
        return None

    def _split(self, address, rounded):
        chunk = self._chunks[address]
        rest, following = address + rounded, chunk[3]
        self._chunks[rest] = [chunk[0] - rounded, True, address, following]
        if following is not None:
            self._chunks[following][2] = rest
        chunk[0], chunk[3] = rounded, rest
        self._add_free(rest)

    def _merge(self, first, second):
        size, _, _, following = self._chunks.pop(second)
        self._chunks[first][0] += size
        self._chunks[first][3] = following
        if following is not None:
            self._chunks[following][2] = first

    def _extend(self, rounded):
        grown = False
        while rounded > self._next_region:
            self._next_region *= 2
            grown = True
        address, size = self._top, self._next_region
        if not grown:
            self._next_region *= 2
        self._top += size + ALIGNMENT  # a gap: regions are not coalesced
        self._chunks[address] = [size, True, None, None]
        self._add_free(address)

    def _add_free(self, address):
        size = self._chunks[address][0]
        bisect.insort(self._free[_bin(size)], (size, address))

    def _remove_free(self, address):
        size = self._chunks[address][0]
        free = self._free[_bin(size)]
        free.pop(bisect.bisect_left(free, (size, address)))


def _bin(size):
    return min(_N_BINS - 1, max(0, (size // ALIGNMENT).bit_length() - 1))


def counted(persistent, kind):
    """The persistent buffers (bytes) that the statistics of a device of this kind count."""
    return [size for size in persistent if size > (_SMALL_ON_CPU if kind == "CPU" else 0)]


def chunk_peaks(run, problem, kinds, before=None, histories=_HISTORIES):
    """What the allocator of each device will report as its peak, in bytes, persistent memory included. List of int.

    What it reports depends on what the process allocated before. So the schedule is replayed after several histories: the variables, each
    made with 0 to 3 temporaries of its size, then the schedule `before` (what ran until the plan took over), then this one until it
    repeats itself; the worst counts.

    Args:
        run: a simulated run with timeline. before: another run of the same problem, or None.
        kinds: device kind per device.
        histories: numbers of temporaries that each variable was made with.
    """
    peaks = []
    for device, kind in enumerate(kinds):
        small = _SMALL_ON_CPU if kind == "CPU" else 0
        rows = _rows(run, device, small)
        rows_before = _rows(before, device, small) if before is not None else []
        mine = [b for b, q in zip(problem.persistent.tolist(), _persistent_devices(run, problem), strict=True) if q == device]
        held = counted(mine, kind)
        peaks.append(max(_peak_after(held, temporaries, rows_before, rows) for temporaries in histories))
    return peaks


def _persistent_devices(run, problem):
    return run.device.tolist() if problem.n_devices > 1 else [0] * problem.n_ops


def _rows(run, device, small):
    chosen = (run.allocations[:, 1] == device) & (abs(run.allocations[:, 3]) >= max(small, 1))
    return run.allocations[chosen][:, 2:4].tolist()


def _peak_after(held, temporaries, rows_before, rows):
    allocator = BfcAllocator()
    for size in held:
        scratch = [allocator.allocate(size) for _ in range(temporaries)]
        allocator.allocate(size)
        for address in scratch:
            allocator.free(address)
    if rows_before:
        _replay(allocator, rows_before)
    for _ in range(_REPEATS):
        peak = _replay(allocator, rows)
    return peak


def _replay(allocator, rows):
    """Replays one step; what is still held at its end (results) is freed then. Returns the step's peak."""
    live = {}
    peak = allocator.in_use
    for buffer, size in rows:
        if size > 0:
            live[buffer] = allocator.allocate(size)
            peak = max(peak, allocator.in_use)
        else:
            allocator.free(live.pop(buffer))
    for address in live.values():
        allocator.free(address)
    return peak
