"""Rollouts: genetic searches with given proposals, many at once, in threads of this process or on the machines of a Ray cluster.

The value of a rollout depends on the rollout alone, so that it does not matter where it was made, nor how often.
"""

import concurrent.futures
import dataclasses

import numpy as np

from tf_regal import errors
from tf_regal.policy import instances
from tf_regal.search.proposal import Proposal


@dataclasses.dataclass(frozen=True)
class Rollout:
    """One search. affinity, priority: choices, see `search.proposal`; None: uniform."""

    instance: instances.Instance
    affinity: np.ndarray | None
    priority: np.ndarray | None
    seed: int
    evaluations: int


def value(rollout):
    """The objective that the search reaches (`Prepared.value`)."""
    proposal = None if rollout.affinity is None else Proposal(rollout.affinity, rollout.priority)
    return instances.prepared(rollout.instance).search(proposal, rollout.seed, rollout.evaluations)


class Threads:
    """Rollouts in threads: the native core releases Python's lock."""

    def __init__(self, threads):
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)

    def values(self, rollouts):
        """float64 [rollouts]."""
        return np.array(list(self._pool.map(value, rollouts)), float)

    def close(self):
        self._pool.shutdown(cancel_futures=True)


class Ray:
    """Rollouts on a Ray cluster; a worker that dies costs the time of what it was doing."""

    def __init__(self, address):
        """address: of a cluster ("auto", "host:port"), or "local": one of this machine's cores."""
        try:
            import ray
        except ImportError as error:
            raise errors.InvalidArgumentError("ray is not installed; run: pip install 'tf-regal[ray]'") from error
        self._ray = ray
        self._started = not ray.is_initialized()
        if self._started:
            ray.init(address=None if address == "local" else address, log_to_driver=False, include_dashboard=False)
        self._value = ray.remote(num_cpus=1, max_retries=-1)(value)

    def values(self, rollouts):
        """float64 [rollouts]."""
        return np.array(self._ray.get([self._value.remote(rollout) for rollout in rollouts]), float)

    def close(self):
        if self._started:
            self._ray.shutdown()
