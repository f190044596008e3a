"""Medians, spreads and ratios, against cases computed by hand."""

import pytest

from tf_regal.bench import timing
from tf_regal.bench.timing import Sample


def test_sample():
    assert Sample.of([3.0, 1.0, 10.0]) == Sample(3.0, 1.0, 10.0, 3)
    assert Sample.of([1.0, 2.0]) == Sample(1.5, 1.0, 2.0, 2)


def test_ratio_is_of_the_same_rounds():
    assert timing.ratio([4.0, 9.0, 6.0], [2.0, 3.0, 1.0]) == Sample(3.0, 2.0, 6.0, 3)
    with pytest.raises(ValueError, match="zip"):
        timing.ratio([1.0], [1.0, 2.0])


def test_interleaved_takes_turns():
    called = []

    def function(name):
        called.append(name)
        return float(len(called))

    found = timing.interleaved({name: lambda name=name: function(name) for name in "abc"}, 4)
    assert "".join(called) == "abcbcacababc"
    assert found == {"a": [1.0, 6.0, 8.0, 10.0], "b": [2.0, 4.0, 9.0, 11.0], "c": [3.0, 5.0, 7.0, 12.0]}


def test_seconds():
    assert 0 <= timing.seconds(lambda: None) < 60
