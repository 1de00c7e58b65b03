"""Functions of functions: derivatives, and loops with a carried value.

They act on the graph that a function builds, so they compose with each other.
"""

from treadle.transforms.custom import checkpoint, stop_gradient
from treadle.transforms.derivatives import grad, value_and_grad
from treadle.transforms.loops import scan

__all__ = ["checkpoint", "grad", "scan", "stop_gradient", "value_and_grad"]
