"""Same side effects in the same order: variables, prints, python functions, tables, queues, summaries, random streams."""

from .hooked import to_numpy


def applies(program):
    return program.name not in ("unrolled graph of 10,000 ops", "constants of 64 MB and odd names")  # they have none


def test_side_effects(kind, plain, planned, cell):
    def act(instance):
        states = []
        for i in range(1 if kind.heavy else 3):
            instance.step(i)
            states.append(to_numpy(instance.state()))
        return states

    assert planned(act) == plain(act)
    cell()
