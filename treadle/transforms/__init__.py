"""Functions of functions: derivatives, many examples at once, loops and branches.

They act on the graph that a function builds, so they compose with each other.
"""

from treadle.transforms.batching import vmap
from treadle.transforms.custom import checkpoint, custom_jvp, custom_vjp, stop_gradient
from treadle.transforms.derivatives import grad, value_and_grad, vjp
from treadle.transforms.forward import hessian, hvp, jacfwd, jacobian, jacrev, jvp
from treadle.transforms.loops import cond, scan, while_loop

__all__ = [
    "checkpoint",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "scan",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
