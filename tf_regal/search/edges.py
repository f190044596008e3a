"""The edges of a Problem as Python lists: what loops over ops walk over."""


class Edges:
    """The edges of a Problem as Python lists: what the loops below walk over."""

    def __init__(self, problem):
        p = problem
        self.inputs = [p.input_idx[a:b] for a, b in zip(p.input_ptr[:-1].tolist(), p.input_ptr[1:].tolist(), strict=True)]
        self.inputs = [x.tolist() for x in self.inputs]
        self.control = [p.control_idx[a:b].tolist() for a, b in zip(p.control_ptr[:-1].tolist(), p.control_ptr[1:].tolist(), strict=True)]
        self.producer = p.producer.tolist()
        self.consumers = [[] for _ in range(p.n_tensors)]
        self.outputs = [[] for _ in range(p.n_ops)]
        self.control_successors = [[] for _ in range(p.n_ops)]
        for tensor, op in enumerate(self.producer):
            self.outputs[op].append(tensor)
        for op in range(p.n_ops):
            for tensor in self.inputs[op]:
                self.consumers[tensor].append(op)
            for source in self.control[op]:
                self.control_successors[source].append(op)

    def n_predecessors(self):
        return [len(i) + len(c) for i, c in zip(self.inputs, self.control, strict=True)]

    def successors(self, op):
        """Consumers of the op's outputs and its control successors, once per edge."""
        for tensor in self.outputs[op]:
            yield from self.consumers[tensor]
        yield from self.control_successors[op]
