"""The methods of Tensor, made from the table of public names.

A public function takes and returns nodes. `lift` makes of it a function of Tensors: arguments that
are Tensors, arrays or bound sizes become nodes, results become Tensors, bindings are united.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from treadle import convert, generator
from treadle.engine.cell import NO_BINDINGS, Cell
from treadle.engine.realize import note
from treadle.graph import (  # noqa: F401  (importing them fills the table)
    convolution,
    creation,
    elementwise,
    functions,
    indexing,
    linear,
    losses,
    movement,
    neural,
    random,
    reduction,
    selection,
)
from treadle.graph.public import METHODS, Public
from treadle.ir import dtype as dt
from treadle.ir.dtype import DType
from treadle.ir.node import Node
from treadle.tensor import Tensor

# operator method -> public name
OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}  # fmt: skip
COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
UNARY = {"neg": "neg", "invert": "bitwise_not", "abs": "abs"}
CASTS = {
    "float": dt.float32, "double": dt.float64, "half": dt.float16, "bfloat16": dt.bfloat16,
    "bool": dt.bool_, "char": dt.int8, "short": dt.int16, "int": dt.int32, "long": dt.int64,
}  # fmt: skip
# what an operator accepts on its other side; for anything else Python tries that side's own method
OPERANDS = (Cell, bool, int, float)


def wrap(result: Any, bindings: dict[str, int]) -> Any:
    """Nodes in a result as Tensors."""
    if isinstance(result, Node):
        return Tensor._of(result, bindings)
    if isinstance(result, tuple | list):
        return type(result)(wrap(part, bindings) for part in result)
    return result


def lift(entry: Public) -> Callable[..., Any]:
    """The function of a public name as it works on Tensors."""
    function = entry.function

    @wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        bindings = NO_BINDINGS
        nodes = []
        for arg in args:
            if isinstance(arg, Cell):
                if arg.bindings:
                    bindings = convert.bind(bindings, arg.bindings)
                nodes.append(arg.node)
            else:
                new, bindings = convert.unwrap(arg, bindings)
                nodes.append(new)
        if named:
            if named.get("dtype") is not None:
                named["dtype"] = convert.as_dtype(named["dtype"])
            named, bindings = convert.unwrap(named, bindings)
        result = function(*nodes, **named)
        if entry.name in INDEXING:
            note(result)
        return wrap(result, bindings)

    run.__name__ = entry.name
    return run


INDEXING = {"gather", "scatter", "index_select", "take_along_dim", "embedding", "one_hot", "cross_entropy", "nll_loss"}


def drawn(entry: Public) -> Callable[..., Any]:
    """A random function: the key is drawn now, from the seeded sequence."""
    lifted = lift(entry)

    @wraps(lifted)
    def run(*args: Any, generator_key: int | None = None, **named: Any) -> Any:
        requires_grad = named.pop("requires_grad", False)
        key = generator.next_key() if generator_key is None else generator_key
        result = lifted(key, *args, **named)
        if requires_grad:
            result.requires_grad = True
        return result

    return run


def keyed(entry: Public) -> Callable[..., Any]:
    """A function that may draw: it takes a key from the seeded sequence when it does."""
    lifted = lift(entry)

    @wraps(lifted)
    def run(*args: Any, **named: Any) -> Any:
        named.setdefault("random_key", generator.next_key)
        return lifted(*args, **named)

    return run


def created(entry: Public) -> Callable[..., Any]:
    """A function that makes a tensor from nothing."""
    lifted = lift(entry)

    @wraps(lifted)
    def run(*args: Any, **named: Any) -> Any:
        requires_grad = named.pop("requires_grad", False)
        result = lifted(*args, **named)
        if requires_grad:
            result.requires_grad = True
        return result

    return run


def operator(name: str, swapped: bool = False) -> Callable[[Tensor, Any], Any]:
    """A binary operator; NotImplemented for what is not a number or an array."""
    lifted = lift(METHODS[name])

    def run(self: Tensor, other: Any) -> Any:
        if not isinstance(other, OPERANDS) and not hasattr(other, "__array__") and not isinstance(other, convert.Dim):
            return NotImplemented
        return lifted(other, self) if swapped else lifted(self, other)

    return run


def in_place(name: str) -> Callable[..., Tensor]:
    """`x.name_(..)`: the result is put into the cell x."""
    lifted = lift(METHODS[name])

    def run(self: Tensor, *args: Any, **named: Any) -> Tensor:
        result = lifted(self, *args, **named)
        if result.dtype is not self.dtype:
            raise TypeError(
                f"{name}_ gives {result.dtype}, which a tensor of {self.dtype} cannot hold in place"
            )
        return self.assign(result)

    run.__name__ = f"{name}_"
    run.__doc__ = f"`{name}`, with the result put into this tensor. Returns it."
    return run


def caster(name: str, dtype: DType) -> Callable[[Tensor], Tensor]:
    """The method that casts to one dtype."""

    def run(self: Tensor) -> Tensor:
        return self.cast(dtype)

    run.__name__ = name
    run.__doc__ = f"This tensor as {dtype}."
    return run


def attach() -> None:
    """Give Tensor every method of the table, the operators, and the forms that work in place."""
    for name, entry in METHODS.items():
        if entry.kind == "random":
            setattr(Tensor, name, staticmethod(drawn(entry)))
        elif entry.kind == "keyed":
            setattr(Tensor, name, keyed(entry))
        elif entry.kind == "creates":
            setattr(Tensor, name, staticmethod(created(entry)))
        elif entry.kind == "property":
            setattr(Tensor, name, property(lift(entry)))
        else:
            setattr(Tensor, name, lift(entry))
            if entry.source == "PyTorch" and not hasattr(Tensor, f"{name}_"):
                setattr(Tensor, f"{name}_", in_place(name))
    for name, dtype in CASTS.items():
        setattr(Tensor, name, caster(name, dtype))
    Tensor.manual_seed = staticmethod(generator.manual_seed)  # type: ignore[attr-defined]
    for short, name in OPERATORS.items():
        setattr(Tensor, f"__{short}__", operator(name))
        setattr(Tensor, f"__r{short}__", operator(name, swapped=True))
        setattr(Tensor, f"__i{short}__", in_place(name))
    for short, name in COMPARISONS.items():
        setattr(Tensor, f"__{short}__", operator(name))
    for short, name in UNARY.items():
        setattr(Tensor, f"__{short}__", lift(METHODS[name]))


attach()
