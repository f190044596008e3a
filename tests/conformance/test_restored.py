"""disable() and leaving the context restore everything; nested and repeated enables work."""

import tf_regal

from .hooked import FORCED, to_numpy


def applies(program):
    return not program.heavy


def test_restored(kind, plain, planned, seen, cell):
    def act(instance):
        return to_numpy(instance.step(0))

    want = plain(act)
    with tf_regal.enable(**FORCED), tf_regal.enable(**{**FORCED, "min_ops": 10**9}):
        assert act(kind.make()) == want
    assert not tf_regal.is_enabled()
    assert not [r for r in seen() if r.status == "planned"]  # the innermost counts
    before = len(seen())
    assert act(kind.make()) == want
    assert len(seen()) == before  # nothing looks any more
    tf_regal.enable(**FORCED)
    tf_regal.enable(**FORCED)
    instance = kind.make()
    assert act(instance) == want
    tf_regal.disable()
    assert to_numpy(instance.step(1)) == plain(lambda other: [to_numpy(other.step(i)) for i in range(2)][1])
    cell()
