"""Errors of tf-regal: each names the argument, shows the value, says what is valid and what to do next."""


class TfRegalError(Exception):
    """Base of every error that tf-regal raises on purpose."""


class InvalidArgumentError(TfRegalError, ValueError):
    """An argument has a value that is not valid."""


class InvalidProblemError(InvalidArgumentError):
    """The arrays of a `Problem` do not fit together (cycle, dangling edge, negative cost, …)."""


class TopologyError(InvalidArgumentError):
    """A topology or device cannot be parsed, or is not here."""


class GraphError(TfRegalError):
    """A model or graph cannot be read, or has nothing to plan."""


class PlanFileError(TfRegalError):
    """A plan file is damaged, truncated, or of another version."""


class CostFileError(InvalidArgumentError):
    """A cost file is missing, damaged, or of another version."""


class PolicyError(InvalidArgumentError):
    """A policy is missing, damaged, or of another version."""


class PlanMismatchError(TfRegalError):
    """A plan does not fit: it was made for another graph, or names devices that are not here."""


class VariableMoveError(TfRegalError):
    """A variable cannot be moved to another device: something would go on with the old one, or it has no value."""


class InfeasibleError(TfRegalError):
    """No plan was found within the devices' memory; carries the best that was found.

    Attributes:
        plan: the plan with the smallest excess, or None.
        device: name of the device with the largest excess.
        shortfall: bytes missing there.
    """

    def __init__(self, message, plan=None, device=None, shortfall=None):
        super().__init__(message)
        self.plan, self.device, self.shortfall = plan, device, shortfall


class UnsupportedVersionError(TfRegalError):
    """The installed TensorFlow is not supported."""


class MissingDependencyError(TfRegalError, ImportError):
    """A method or command needs an optional package that is not installed."""

    def __init__(self, what, package, extra="compare"):
        super().__init__(f"{what} needs the package {package!r}, which is not installed; install it with: pip install 'tf-regal[{extra}]'", name=package)
        self._arguments = what, package, extra

    def __reduce__(self):  # worker processes hand it back pickled, by what it was made of and not by its message
        return type(self), self._arguments
