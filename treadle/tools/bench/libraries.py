"""The libraries that can be measured, each behind the same few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, Protocol

import numpy as np

from treadle import extras, host

Function = Callable[..., Any]


class Library(Protocol):
    """nn, optim, functional: its modules of these names. `captured` gives a function as it is
    measured: when it returns, the work is done."""

    name: str
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

    name = "treadle"

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

    name = "torch"

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


class Tinygrad:
    """tinygrad with its TinyJit. It has methods where PyTorch has functions, so it takes part in
    the cases whose functions are methods of its tensors too."""

    name = "tinygrad"

    def __init__(self) -> None:
        self.module = extras.load("tinygrad")
        self.nn = self.module.nn
        self.optim = self.module.nn.optim
        self.functional = _Methods(self.module.Tensor)

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


class _Methods:
    """A module of functions made of the methods of a class."""

    def __init__(self, owner: type) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner, name)


LIBRARIES: dict[str, Callable[[], Library]] = {
    "treadle": Treadle,
    "torch": Torch,
    "tinygrad": Tinygrad,
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
