"""Functions of functions: derivatives, and loops with a carried value.

They act on the graph that a function builds, so they compose with each other.
"""

from treadle.transforms.derivatives import grad, value_and_grad
from treadle.transforms.loops import scan

__all__ = ["grad", "scan", "value_and_grad"]
