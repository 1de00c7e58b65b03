"""Parameter: a tensor that is to be learnt."""

from __future__ import annotations

from typing import Any

from treadle.engine.realize import LOCK
from treadle.ir.dtype import DType
from treadle.tensor import Tensor


class Parameter(Tensor):
    """A tensor that is a parameter of the module that holds it, also while it is frozen.

    data: as for Tensor. requires_grad: False freezes it. A plain Tensor with requires_grad=True is
    a parameter too.

    >>> nn.Parameter(Tensor([1.0, 2.0])).requires_grad
    True
    """

    __slots__ = ()

    def __init__(
        self,
        data: Any,
        requires_grad: bool = True,
        dtype: DType | str | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__(data, dtype=dtype, device=device, requires_grad=requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        return Parameter(self.numpy(), self._requires_grad, self.dtype, self.device)

    def __reduce__(self) -> tuple[Any, ...]:
        return Parameter, (self.numpy(), self._requires_grad, self.dtype, self.device)


def is_parameter(tensor: Tensor) -> bool:
    """Whether a tensor is to be learnt: a Parameter, or one with requires_grad=True."""
    return isinstance(tensor, Parameter) or tensor.requires_grad


def clear_gradient(parameter: Tensor, set_to_none: bool) -> None:
    """Forget the gradient of a parameter, or set it to 0."""
    with LOCK:  # what changes during a trace is what the traced function does
        before = parameter.grad
        parameter.grad = None if set_to_none or before is None else before.detach().zeros_like()
