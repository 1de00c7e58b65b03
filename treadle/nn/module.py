"""Module: what layers and networks have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from treadle import elsewhere
from treadle.ir.dtype import DType
from treadle.nn import state
from treadle.nn.parameter import clear_gradient, is_parameter
from treadle.nn.walk import named_tensors, walk
from treadle.tensor import Tensor


class Module:
    """The base of layers and networks: put tensors and modules into attributes, write `forward`.

    Parameters, buffers (tensors without a gradient, as running statistics) and modules are found in
    attributes, lists, tuples and dicts, at any depth; `super().__init__()` need not be called.

    >>> class Double(Module):
    ...     def __init__(self):
    ...         self.factor = Tensor(2.0, requires_grad=True)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Double()(Tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    training: bool = True
    _transient: frozenset[str] = frozenset()  # buffers that are not part of the state dict

    def __call__(self, *args: Any, **named: Any) -> Any:
        forward = self.forward
        if "input" in named:  # PyTorch's name of the first
            forward = elsewhere.as_pytorch(forward)
        try:
            return forward(*args, **named)
        except AttributeError as error:
            # an array or a list for a tensor, which lacks its methods
            if any(error.obj is arg for arg in args if not isinstance(arg, Tensor | Module)):
                raise TypeError(
                    f"{type(self).__name__}: expected a tensor, not a {type(error.obj).__name__}: "
                    "write Tensor(..)"
                ) from None
            raise

    def forward(self, *args: Any, **named: Any) -> Any:
        """What the module computes; a call of the module calls it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method forward(self, ..)")

    # ---- what it holds ---------------------------------------------------------------------------
    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """(dotted name, tensor) of every parameter; one that has several names comes once."""
        seen = set()
        for name, tensor in named_tensors(self).items():
            if is_parameter(tensor) and id(tensor) not in seen:
                seen.add(id(tensor))
                yield _joined(prefix, name), tensor

    def parameters(self) -> Iterator[Tensor]:
        """Every parameter once."""
        return (tensor for _, tensor in self.named_parameters())

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """(dotted name, tensor) of every tensor that is no parameter; each comes once."""
        seen = set()
        for name, tensor in named_tensors(self).items():
            if not is_parameter(tensor) and id(tensor) not in seen:
                seen.add(id(tensor))
                yield _joined(prefix, name), tensor

    def buffers(self) -> Iterator[Tensor]:
        """Every tensor that is no parameter, once."""
        return (tensor for _, tensor in self.named_buffers())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """(dotted name, module) of this module and every module in it, each once, outer first."""
        seen = set()
        for name, thing in walk(self):
            if isinstance(thing, Module) and id(thing) not in seen:
                seen.add(id(thing))
                yield _joined(prefix, name), thing

    def modules(self) -> Iterator[Module]:
        """This module and every module in it, once, outer first."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the modules directly below this one."""
        inner: set[int] = set()
        for name, module in self.named_modules():
            if module is not self and id(module) not in inner:
                inner.update(id(below) for below in module.modules())
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below this one."""
        return (module for _, module in self.named_children())

    def get_submodule(self, target: str) -> Any:
        """The module of a dotted name; "" is this one. AttributeError if there is none."""
        return self._named("module", target, dict(self.named_modules()))

    def get_parameter(self, target: str) -> Tensor:
        """The parameter of a dotted name. AttributeError if there is none."""
        found: Tensor = self._named("parameter", target, dict(self.named_parameters()))
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name. AttributeError if there is none."""
        found: Tensor = self._named("buffer", target, dict(self.named_buffers()))
        return found

    def _named(self, what: str, target: str, known: dict[str, Any]) -> Any:
        if target not in known:
            raise AttributeError(
                f"{type(self).__name__} has no {what} {target!r}; it has {', '.join(known)}"
            )
        return known[target]

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Hold a tensor that is not learnt as the attribute `name`; with persistent=False it is not
        part of the state dict."""
        setattr(self, name, tensor)
        self._transient = self._transient - {name} if persistent else self._transient | {name}

    def register_parameter(self, name: str, parameter: Tensor | None) -> None:
        """Hold a parameter as the attribute `name`."""
        setattr(self, name, parameter)

    def add_module(self, name: str, module: Any) -> None:
        """Hold a module as the attribute `name`."""
        setattr(self, name, module)

    register_module = add_module

    # ---- state -----------------------------------------------------------------------------------
    def state_dict(self, prefix: str = "") -> dict[str, Tensor]:
        """Every parameter and buffer by its dotted name: the tensors themselves, not copies."""
        return state.get_state_dict(self, prefix)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True
    ) -> state.IncompatibleKeys:
        """Put the values of a state dict into the tensors of this module; see
        `treadle.nn.state.load_state_dict`."""
        return state.load_state_dict(self, state_dict, strict)

    # ---- modes -----------------------------------------------------------------------------------
    def train(self, mode: bool = True) -> Self:
        """Set `training` here and in every module below: what dropout and batch norm go by."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Set `training` to False here and in every module below."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of every parameter (or set them to 0)."""
        for parameter in self.parameters():
            clear_gradient(parameter, set_to_none)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of every parameter: False freezes them."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def apply(self, function: Callable[[Module], Any]) -> Self:
        """Call a function with every module, inner ones first, and this one last."""
        for module in reversed(list(self.modules())):
            function(module)
        return self

    # ---- dtypes and devices ----------------------------------------------------------------------
    def to(self, *where: Any, dtype: DType | str | None = None, device: str | None = None) -> Self:
        """Move every tensor to a device and cast every floating one to a dtype, in place: an
        optimizer that holds the parameters goes on holding them. `model.to("C", float16)`."""
        for tensor in {id(t): t for t in named_tensors(self).values()}.values():
            _move(tensor, where, dtype, device)
            if tensor.grad is not None:
                _move(tensor.grad, where, dtype, device)
        return self

    def half(self) -> Self:
        """Cast every floating tensor to float16, in place."""
        return self.to(dtype="float16")

    def bfloat16(self) -> Self:
        """Cast every floating tensor to bfloat16, in place."""
        return self.to(dtype="bfloat16")

    def float(self) -> Self:
        """Cast every floating tensor to float32, in place."""
        return self.to(dtype="float32")

    def double(self) -> Self:
        """Cast every floating tensor to float64, in place."""
        return self.to(dtype="float64")

    def cpu(self) -> Self:
        """Move every tensor to the device CPU, in place."""
        return self.to(device="CPU")

    # ---- printing --------------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """What stands in the parentheses when the module is printed, besides its modules."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): {child!r}" for name, child in self.named_children()]
        if not lines:
            return f"{type(self).__name__}({self.extra_repr()})"
        inside = "\n".join([self.extra_repr(), *lines] if self.extra_repr() else lines)
        return f"{type(self).__name__}(\n  " + inside.replace("\n", "\n  ") + "\n)"


for _name, _instead in elsewhere.OF_LAYERS.items():
    setattr(Module, _name, elsewhere.Elsewhere(_name, _instead, "Module"))


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix and name else prefix or name


def _move(tensor: Tensor, where: Any, dtype: DType | str | None, device: str | None) -> None:
    """`tensor.to(..)` in place; the dtype is only for floating tensors."""
    moved = tensor.to(*where, dtype=dtype, device=device)
    if not tensor.dtype.is_float:
        moved = tensor.to(device=moved.device)
    state.replace(tensor, moved)
