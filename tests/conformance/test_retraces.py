"""Same retraces, and as many traces in the cache."""


# The first two are traced as any other function is, only longer; of the others the traces are not the program's to count.
LEFT_OUT = ("unrolled graph of 10,000 ops", "constants of 64 MB and odd names", "function of a tf.data pipeline", "called from other threads")


def applies(program):
    return program.name not in LEFT_OUT and not program.name.startswith(("Keras", "tf_keras"))


def test_retraces(kind, plain, planned, cell):
    def act(instance):
        assert instance.functions
        counts = []
        for i in range(2 if kind.heavy else 4):
            instance.step(i)
            counts.append([(f.experimental_get_tracing_count(), len(f._list_all_concrete_functions())) for f in instance.functions])
        return counts

    assert planned(act) == plain(act)
    cell()
