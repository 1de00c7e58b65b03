"""Functions of functions: derivatives, and loops with a carried value.

They act on the graph that a function builds, so they compose with each other.
"""

from treadle.transforms.custom import checkpoint, custom_jvp, custom_vjp, stop_gradient
from treadle.transforms.derivatives import grad, value_and_grad, vjp
from treadle.transforms.loops import cond, scan, while_loop

__all__ = [
    "checkpoint",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "grad",
    "scan",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "while_loop",
]
