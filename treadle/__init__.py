"""treadle: a deep-learning library whose whole path, from `x @ w` to machine code, can be read.

>>> from treadle import Tensor
>>> (Tensor([1.0, 2.0]) * 2 + 1).tolist()
[3.0, 5.0]
"""

import math
from typing import TYPE_CHECKING, Any

from treadle import elsewhere, extras, methods, rearranging  # methods gives Tensor its methods
from treadle.dims import Variable
from treadle.engine.trace import JitError
from treadle.generator import manual_seed
from treadle.graph.public import NAMESPACE
from treadle.ir.dtype import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from treadle.printing import set_printoptions
from treadle.tensor import Tensor, enable_grad, no_grad, tensor
from treadle.tools.debug import explain

if TYPE_CHECKING:  # who uses these loads them: LATE
    from treadle import fft, linalg, nn, special
    from treadle.captured import jit
    from treadle.functions import *  # noqa: F403
    from treadle.kernels import custom_kernel, custom_monoid
    from treadle.standard import (
        Device,
        asarray,
        astype,
        can_cast,
        finfo,
        from_dlpack,
        iinfo,
        isdtype,
        result_type,
    )
    from treadle.transforms import (
        checkpoint,
        cond,
        custom_jvp,
        custom_vjp,
        grad,
        hessian,
        hvp,
        jacfwd,
        jacobian,
        jacrev,
        jvp,
        scan,
        stop_gradient,
        value_and_grad,
        vjp,
        vmap,
        while_loop,
    )

rearranging.attach()

__version__ = "0.1.0"
__array_api_version__ = "2024.12"

# constants of the Array API standard, and its name of the dtype
e, pi, inf, nan = math.e, math.pi, math.inf, math.nan
newaxis = None
bool = bool_
cfloat, cdouble = complex64, complex128  # as PyTorch calls them, too

# module -> the names that are found there when they are first used; none: the module itself
_MODULES = {
    "fft": "",
    "linalg": "",
    "nn": "",
    "special": "",
    "captured": "jit",
    "kernels": "custom_kernel custom_monoid",
    "standard": "Device __array_namespace_info__ asarray astype can_cast finfo from_dlpack iinfo "
    "isdtype result_type",
    "transforms": "checkpoint cond custom_jvp custom_vjp grad hessian hvp jacfwd jacobian jacrev "
    "jvp scan stop_gradient value_and_grad vjp vmap while_loop",
}
LATE = {name: module for module, names in _MODULES.items() for name in names.split() or [module]}


if not TYPE_CHECKING:  # to type checkers, what is not named above is not there

    def __getattr__(name: str) -> Any:
        """What is made or loaded when it is first used: the names in LATE, and the functions of the
        table of public names, as `treadle.exp(x)`."""
        if name in LATE:
            module = extras.load(f"{__name__}.{LATE[name]}")
            made = module if name == LATE[name] else getattr(module, name)
        elif name in NAMESPACE:
            made = methods.function(name)
        else:
            raise elsewhere.of_module(name)
        globals()[name] = made
        return made


def __dir__() -> list[str]:
    return sorted({*globals(), *LATE, *NAMESPACE})


__all__ = [
    "Device",
    "JitError",
    "Tensor",
    "Variable",
    "asarray",
    "astype",
    "bfloat16",
    "bool_",
    "can_cast",
    "cdouble",
    "cfloat",
    "checkpoint",
    "complex64",
    "complex128",
    "cond",
    "custom_jvp",
    "custom_kernel",
    "custom_monoid",
    "custom_vjp",
    "enable_grad",
    "explain",
    "fft",
    "finfo",
    "float8_e4m3",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "grad",
    "hessian",
    "hvp",
    "iinfo",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linalg",
    "manual_seed",
    "nan",
    "newaxis",
    "nn",
    "no_grad",
    "pi",
    "result_type",
    "scan",
    "set_printoptions",
    "special",
    "stop_gradient",
    "tensor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
