"""The libraries that can be measured, each behind the same few words."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, Protocol

import numpy as np

from treadle import extras, host

Function = Callable[..., Any]


class Library(Protocol):
    """package: what has to be installed. nn, optim, functional: its modules of these names.
    `captured` gives a function as it is measured: when it returns, the work is done."""

    name: str
    package: str
    nn: Any
    optim: Any
    functional: Any

    def version(self) -> str: ...
    def tensor(self, array: np.ndarray, dtype: str) -> Any: ...
    def array(self, tensor: Any) -> np.ndarray: ...
    def captured(self, function: Function) -> Function: ...
    def gradients(self, function: Function, at: Sequence[Any], cotangent: Any) -> Any: ...
    def no_grad(self) -> Any: ...


class Treadle:
    """treadle: functions are captured by `jit`, as users of speed do. Only its public names are
    used, so that older commits can be measured too."""

    name = package = "treadle"

    def __init__(self) -> None:
        self.module = extras.load("treadle")
        self.nn = extras.load("treadle.nn")
        self.optim = self.nn.optim
        self.functional: Any = extras.load("treadle.nn.functional")

    def version(self) -> str:
        return installed("treadle")

    def tensor(self, array: np.ndarray, dtype: str) -> Any:
        made = self.module.Tensor(array)
        if array.dtype.kind == "f" and dtype != "float32":
            made = made.cast(getattr(self.module, dtype))
        return made.realize()

    def array(self, tensor: Any) -> np.ndarray:
        return np.asarray(tensor.cast(self.module.float64).numpy())

    def captured(self, function: Function) -> Function:
        made: Function = self.module.jit(function)
        return made

    def gradients(self, function: Function, at: Sequence[Any], cotangent: Any) -> Any:
        """The value is not asked for; what the derivative needs of it is computed."""
        return self.module.vjp(function, *at)[1](cotangent)

    def no_grad(self) -> Any:
        return self.module.no_grad()


class Torch:
    """PyTorch, eager, with as many threads as treadle."""

    name = package = "torch"

    def __init__(self) -> None:
        self.module = extras.load("torch")
        self.module.set_num_threads(host.threads())
        self.nn = self.module.nn
        self.optim = self.module.optim
        self.functional = self.nn.functional

    def version(self) -> str:
        return str(self.module.__version__)

    def tensor(self, array: np.ndarray, dtype: str) -> Any:
        made = self.module.from_numpy(array)
        return made.to(getattr(self.module, dtype)) if array.dtype.kind == "f" else made

    def array(self, tensor: Any) -> np.ndarray:
        return np.asarray(tensor.detach().to(self.module.float64).numpy())

    def captured(self, function: Function) -> Function:
        return function

    def gradients(self, function: Function, at: Sequence[Any], cotangent: Any) -> Any:
        leaves = [each.detach().requires_grad_() for each in at]
        return self.module.autograd.grad(function(*leaves), leaves, cotangent)

    def no_grad(self) -> Any:
        return self.module.no_grad()


class TorchCompile(Torch):
    """PyTorch, functions compiled by `torch.compile` with its defaults."""

    name = "torch_compile"

    def captured(self, function: Function) -> Function:
        made: Function = self.module.compile(function)
        return made


class TorchPrepacked(Torch):
    """PyTorch, eager, but the weights of convolutions lie the way oneDNN asks for."""

    name = "torch_prepacked"

    def __init__(self) -> None:
        super().__init__()
        self.functional = _PrepackedFunctions(self.module)


class _PrepackedFunctions:
    """PyTorch's functions; a weight of a convolution is reordered once for each shape of input."""

    def __init__(self, torch: Any) -> None:
        self._functional = torch.nn.functional
        self._onednn = torch.ops.mkldnn
        self._packed: dict[tuple[Any, ...], Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._functional, name)

    def conv2d(
        self, x: Any, weight: Any, bias: Any, stride: int, padding: int, dilation: int = 1,
        groups: int = 1,
    ) -> Any:  # fmt: skip
        window = [padding] * 2, [stride] * 2, [dilation] * 2, groups
        key = (weight, tuple(x.shape), str(window))
        if key not in self._packed:
            reorder = self._onednn._reorder_convolution_weight
            self._packed[key] = reorder(weight, *window, list(x.shape))
        return self._onednn._convolution_pointwise(
            x, self._packed[key], bias, *window, "none", [], ""
        )


class Tinygrad:
    """tinygrad with its TinyJit, on its CPU device if DEV names no other."""

    name = package = "tinygrad"

    def __init__(self) -> None:
        os.environ.setdefault("DEV", "CPU")
        self.module = extras.load("tinygrad")
        self.nn = self.module.nn
        self.optim = self.module.nn.optim
        self.functional = _TinygradFunctions(self.module.Tensor)

    def version(self) -> str:
        return installed("tinygrad")

    def tensor(self, array: np.ndarray, dtype: str) -> Any:
        made = self.module.Tensor(array)
        if array.dtype.kind == "f" and dtype != "float32":
            made = made.cast(getattr(self.module.dtypes, dtype))
        return made.contiguous().realize()

    def array(self, tensor: Any) -> np.ndarray:
        return np.asarray(tensor.cast(self.module.dtypes.float64).numpy())

    def captured(self, function: Function) -> Function:
        def realized(*inputs: Any) -> Any:
            results = listed(function(*inputs))
            self.module.Tensor.realize(*results)
            return tuple(results)

        made = self.module.TinyJit(realized)
        device = self.module.Device[self.module.Device.DEFAULT]

        def run(*inputs: Any) -> Any:
            results = made(*inputs)
            device.synchronize()
            return results

        return run

    def gradients(self, function: Function, at: Sequence[Any], cotangent: Any) -> Any:
        return (function(*at) * cotangent).sum().gradient(*at)

    def no_grad(self) -> Any:
        return self.module.Tensor.train(False)


class _TinygradFunctions:
    """PyTorch's functions by tinygrad's methods; those below differ in arguments or defaults."""

    def __init__(self, owner: type) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner, name)

    def linear(self, x: Any, weight: Any, bias: Any = None) -> Any:
        return x.linear(weight.transpose(), bias)

    def embedding(self, ids: Any, table: Any) -> Any:
        return table[ids]

    def layer_norm(self, x: Any, shape: Sequence[int], weight: Any, bias: Any) -> Any:
        return x.layernorm(tuple(range(-len(shape), 0))) * weight + bias

    def batch_norm(self, x: Any, mean: Any, variance: Any, weight: Any, bias: Any) -> Any:
        return x.batchnorm(weight, bias, mean, (variance + 1e-5).rsqrt())

    def conv2d(
        self, x: Any, weight: Any, bias: Any, stride: int, padding: int, dilation: int = 1,
        groups: int = 1,
    ) -> Any:  # fmt: skip
        return x.conv2d(weight, bias, groups, stride, dilation, padding)

    def max_pool2d(self, x: Any, size: int, stride: int, padding: int) -> Any:
        return x.max_pool2d((size, size), stride, padding=padding)

    def gelu(self, x: Any) -> Any:
        return x.gelu(approximate="none")


LIBRARIES: dict[str, type[Library]] = {
    library.name: library for library in (Treadle, Torch, TorchPrepacked, TorchCompile, Tinygrad)
}


def installed(package: str) -> str:
    """The version of an installed package, or "?"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "?"


def listed(results: Any) -> list[Any]:
    """The tensors of a result: one, or several."""
    return list(results) if isinstance(results, tuple | list) else [results]
