"""Eight threads that trace and call at once get what one gets."""

import threading

from .hooked import to_numpy


def applies(program):
    return program.stateless and not program.heavy


def test_threads(kind, plain, planned, cell):
    def act(instance):
        results, failures, barrier = {}, [], threading.Barrier(8)

        def work(n):
            try:
                barrier.wait(60)
                results[n] = [to_numpy(instance.step((n + i) % 4)) for i in range(4)]
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]
        return results

    alone = plain(lambda instance: [to_numpy(instance.step(i)) for i in range(4)])
    for n, found in planned(act).items():
        assert found == [alone[(n + i) % 4] for i in range(4)]
    cell()
