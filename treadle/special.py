"""Functions of mathematics beyond the elementary ones: `treadle.special.erfcx(x)`. Names and
arguments are PyTorch's `torch.special`.

Some are methods of Tensor too, under the same or another name; the others are in
`treadle/graph/transcendental/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle import methods
from treadle.graph.public import METHODS, SPECIAL

# the name here -> the method of Tensor that it is
OF_METHODS = {
    **{
        name: name
        for name in (
            "digamma",
            "erf",
            "erfc",
            "erfinv",
            "exp2",
            "expm1",
            "i0",
            "log1p",
            "log_softmax",
            "logit",
            "logsumexp",
            "round",
            "sinc",
            "softmax",
            "xlogy",
        )
    },
    "expit": "sigmoid",
    "gammaln": "lgamma",
    "modified_bessel_i0": "i0",
    "multigammaln": "mvlgamma",
    "psi": "digamma",
}


def __getattr__(name: str) -> Callable[..., Any]:
    """The function of this name. AttributeError if there is none."""
    if name in SPECIAL:
        made = methods.function(name, SPECIAL)
    elif name in OF_METHODS:
        made = methods.function(name, {name: METHODS[OF_METHODS[name]]})
    else:
        raise AttributeError(f"module 'treadle.special' has no attribute {name!r}")
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *SPECIAL, *OF_METHODS})
