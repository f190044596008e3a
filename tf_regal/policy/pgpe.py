"""Policy gradients with parameter-based exploration: the weights are what is drawn at random, and the policy that they make is deterministic.

Sehnke et al., "Parameter-exploring policy gradients" (2010), symmetric samples; the centre moves by Adam. One draw of the weights changes all choices of
a graph together, so that a single reward says something about it; drawing a thousand choices one by one (`reinforce`) drowns it in noise.
"""

import numpy as np

_SIGMA = 0.1       # of the weights, at the beginning
_SIGMA_RATE = 0.1  # by which the deviations follow their gradient
_SIGMA_RANGE = (0.02, 0.4)
_ADAM = (0.9, 0.99, 1e-8)
_FLOOR = 0.01      # a smaller spread of a graph's rewards is not blown up: much of it is the searches' own noise


class Pgpe:
    """State: the centre (float64 [weights]), the deviations, Adam's moments. Draws depend on the seed and the step alone."""

    def __init__(self, centre, rate, seed, pairs):
        """centre: weights to start from; rate: of Adam; pairs: symmetric draws per step."""
        self._rate, self._seed, self._pairs = rate, seed, pairs
        self.state = {
            "centre": np.array(centre, float), "sigma": np.full(len(centre), _SIGMA),
            "first": np.zeros(len(centre)), "second": np.zeros(len(centre)), "step": np.array(0),
        }  # fmt: skip

    @property
    def step(self):
        return int(self.state["step"])

    def draws(self):
        """Weights to try, float64 [2 * pairs, weights]: + and − of every pair, one after the other."""
        noise = self._noise()
        centre = self.state["centre"]
        return np.stack([centre + noise, centre - noise], axis=1).reshape(2 * self._pairs, -1)

    def update(self, rewards):
        """One step. rewards: float64 [2 * pairs, graphs], of `draws`; of a graph only the differences between draws count."""
        s, noise = self.state, self._noise()
        scaled = (rewards - rewards.mean(axis=0)) / np.maximum(rewards.std(axis=0), _FLOOR)
        plus, minus = scaled[0::2].mean(axis=1), scaled[1::2].mean(axis=1)
        gradient = ((plus - minus) / 2) @ (noise / s["sigma"]) / self._pairs
        shape = ((plus + minus) / 2) @ ((noise**2 - s["sigma"] ** 2) / s["sigma"] ** 2) / self._pairs
        s["step"] = s["step"] + 1
        one, two, epsilon = _ADAM
        s["first"] = one * s["first"] + (1 - one) * gradient
        s["second"] = two * s["second"] + (1 - two) * gradient**2
        first, second = s["first"] / (1 - one ** self.step), s["second"] / (1 - two ** self.step)
        s["centre"] = s["centre"] + self._rate * first / (np.sqrt(second) + epsilon)
        s["sigma"] = np.clip(s["sigma"] * np.exp(_SIGMA_RATE * np.clip(shape, -0.5, 0.5)), *_SIGMA_RANGE)

    def _noise(self):
        rng = np.random.default_rng([self._seed, self.step])
        return rng.normal(size=(self._pairs, len(self.state["centre"]))) * self.state["sigma"]
