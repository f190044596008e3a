"""The order in which TensorFlow's executor runs the ops of one device whose kernels share a pool of threads.

A thread that has run an op goes on with one of the ops that this made ready, the last; the others go to the thread's own queue, from which it takes
the newest when nothing is left to go on with, and other threads, when they have nothing else, the oldest (`core/common_runtime/executor.cc` and Eigen's
`NonBlockingThreadPool`). So each thread works depth first, which needs less memory than first come, first served. (Where the executor runs the kernels
itself it is first come, first served: `order.usual_run`.)
"""

import collections
import heapq

import numpy as np

from tf_regal.search.edges import Edges


def thread_pool_order(problem, threads):
    """The ops by their start, int32 [ops], where `threads` threads run them for the first device's durations. O(edges + ops · threads)."""
    edges = Edges(problem)
    waits_for = edges.n_predecessors()
    duration = problem.duration[:, 0].tolist()
    going_on = [None] * threads  # what a thread does next
    queues = [collections.deque() for _ in range(threads)]
    order, running, now = [], [], 0

    def release(ready, thread):
        if ready:
            queues[thread].extend(ready[:-1])
            going_on[thread] = ready[-1]

    def start(thread):
        """Whether there was an op for it."""
        op, going_on[thread] = going_on[thread], None
        if op is None:
            if queues[thread]:
                op = queues[thread].pop()
            else:
                queue = next((q for q in queues if q), None)
                if queue is None:
                    return False
                op = queue.popleft()
        heapq.heappush(running, (now + duration[op], len(order), op, thread))
        order.append(op)
        return True

    release([op for op in range(problem.n_ops) if waits_for[op] == 0], 0)
    idle = list(range(threads))
    while True:
        idle = [thread for thread in idle if not start(thread)]
        if not running:
            return np.array(order, np.int32)
        now, _, op, thread = heapq.heappop(running)
        ready = []
        for successor in edges.successors(op):
            waits_for[successor] -= 1
            if waits_for[successor] == 0:
                ready.append(successor)
        release(ready, thread)
        idle = sorted([*idle, thread])
