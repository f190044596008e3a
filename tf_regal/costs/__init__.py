"""Cost models: the duration of every op on a device, and its scratch memory."""

__all__ = ["analytic", "scratch"]
