"""On which lane of its device each op of a schedule runs: for pictures, a schedule itself knows only how many run at once."""

import heapq

import numpy as np


def lanes(device, start_ns, end_ns, n_devices):
    """(lane int32 [ops], the op before on the same lane or −1 int32 [ops]): every op on the lowest lane of its device that is free."""
    n = len(device)
    lane, before = np.zeros(n, np.int32), np.full(n, -1, np.int32)
    free = [[] for _ in range(n_devices)]  # heaps of lane numbers
    busy = [[] for _ in range(n_devices)]  # heaps of (end, lane)
    count = [0] * n_devices
    last = [{} for _ in range(n_devices)]
    devices, starts, ends = device.tolist(), start_ns.tolist(), end_ns.tolist()
    for op in np.lexsort([end_ns, start_ns]).tolist():
        q = devices[op]
        while busy[q] and busy[q][0][0] <= starts[op]:
            heapq.heappush(free[q], heapq.heappop(busy[q])[1])
        if free[q]:
            mine = heapq.heappop(free[q])
        else:
            mine = count[q]
            count[q] += 1
        lane[op], before[op] = mine, last[q].get(mine, -1)
        last[q][mine] = op
        heapq.heappush(busy[q], (ends[op], mine))
    return lane, before
