"""The methods of Tensor, made from the table of public names and put into `Vocabulary`.

A public function takes and returns nodes. `lift` makes of it a function of Tensors: arguments that
are Tensors, arrays or bound sizes become nodes, results become Tensors, bindings are united. A
method is made, and the module where it is written loaded, when it is first used (`Late`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial, wraps
from sys import getrefcount
from types import NoneType
from typing import Any

from treadle import checks, convert, elsewhere, generator, precision
from treadle.dims import Dim
from treadle.engine.cell import NO_BINDINGS, Cell, bind
from treadle.engine.failure import note
from treadle.graph.complex_names import for_complex, meets_complex
from treadle.graph.public import METHODS, NAMESPACE, Public
from treadle.graph.shapes import TensorForSize
from treadle.ir import dtype as dt
from treadle.ir.dtype import DType
from treadle.ir.node import Node
from treadle.tensor import Tensor, read_number
from treadle.vocabulary import Vocabulary

# operator method -> public name
OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}  # fmt: skip
COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
UNARY = {"neg": "neg", "pos": "positive", "invert": "bitwise_not", "abs": "abs"}
SIGNED = {*OPERATORS.values(), *COMPARISONS.values(), *UNARY.values()}  # known by their signs
RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}  # of kinds of dtypes, for what works in place
ALSO_IN_PLACE = {"index_put", "sign"}  # beside PyTorch's plain methods
CASTS = {
    "float": dt.float32, "double": dt.float64, "half": dt.float16, "bfloat16": dt.bfloat16,
    "cfloat": dt.complex64, "cdouble": dt.complex128,
    "bool": dt.bool_, "byte": dt.uint8, "char": dt.int8, "short": dt.int16, "int": dt.int32,
    "long": dt.int64,
}  # fmt: skip
PLAIN = frozenset((bool, int, float, str, NoneType))  # types of arguments that hold nothing complex
# what an operator accepts on its other side, and any array; for anything else Python tries that
# side's own method
OPERANDS = (Cell, *convert.NUMBERS, Dim)


def wrap(result: Any, bindings: dict[str, int]) -> Any:
    """Nodes in a result as Tensors."""
    if isinstance(result, Node):
        return Tensor._of(result, bindings)
    if isinstance(result, tuple | list):
        parts = [wrap(part, bindings) for part in result]
        make = getattr(type(result), "_make", type(result))  # a named tuple takes its fields apart
        return make(parts)
    return result


def say_name(error: Exception, name: str) -> None:
    """Put the public name in front of a message that says neither it nor its own sign, and in the
    place of the name or sign of another function by which this one is computed."""
    message = str(error)
    head, _, rest = message.partition(": ")
    is_sign = name not in SIGNED and not any(map(str.isalnum, head))
    is_other = head in METHODS and head != name
    if rest and (is_sign or is_other):
        error.args = (f"{name}: {rest}", *error.args[1:])
    elif " " in head and not re.search(rf"\b{re.escape(name)}\b", message):
        error.args = (f"{name}: {message}", *error.args[1:])


def first_node(args: tuple[Any, ...]) -> Node | None:
    """The node of the first Tensor among arguments."""
    return next((arg.node for arg in args if isinstance(arg, Cell)), None)


def _sizes_read(
    entry: Public,
    function: Callable[..., Any],
    args: list[Any],
    named: dict[str, Any],
    bindings: dict[str, int],
    size: Node,
) -> Any:
    """What a function gives once the sizes that were given as tensors are read; `size` is one."""
    known: dict[Node, int] = {}

    def with_numbers(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return [with_numbers(part) for part in value]
        return known.get(value, value) if isinstance(value, Node) else value

    itself = 0 if entry.kind == "creates" else 1  # arguments that are no sizes
    while True:
        known[size], _ = read_number(bindings, f"{entry.name}(..) of a size that is a tensor", size)
        try:
            return function(
                *args[:itself],
                *[with_numbers(arg) for arg in args[itself:]],
                **{name: with_numbers(value) for name, value in named.items()},
            )
        except TensorForSize as error:
            if error.node in known:
                raise
            size = error.node


def lift(entry: Public, name: str) -> Callable[..., Any]:
    """The function of a public name as it works on Tensors. name: what users call it here."""
    function = entry.function
    is_view = name in checks.VIEWS and METHODS.get(name) is entry
    draws_indices = entry.kind == "keyed" and entry.gradient == "int"

    @wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        bindings = NO_BINDINGS
        nodes = []
        is_complex = False
        if named:
            named = elsewhere.without_foreign(name, named, entry.spellings)
            args, named = entry.called(args, named)
        for arg in args:
            if isinstance(arg, Cell):
                if arg.bindings:
                    bindings = bind(bindings, arg.bindings)
                node = arg.node
                nodes.append(node)
                if node.dtype.kind == "c":
                    is_complex = True
            else:
                if type(arg) not in PLAIN:
                    arg = entry.number(len(nodes), arg)
                new, bindings = convert.unwrap(arg, bindings, first_node(args))
                nodes.append(new)
                if type(new) not in PLAIN and meets_complex(new):
                    is_complex = True
        if named:
            if named.get("dtype") is not None:
                named["dtype"] = convert.as_dtype(named["dtype"])
            for own, value in named.items():
                if type(value) not in PLAIN:
                    named[own] = entry.number(own, value)
            named, bindings = convert.unwrap(named, bindings, first_node(args))
            is_complex = is_complex or meets_complex(named)
        try:
            chosen = for_complex(entry) if is_complex else function
            try:
                result = chosen(*nodes, **named)
            except TensorForSize as size:
                result = _sizes_read(entry, chosen, nodes, named, bindings, size.node)
        except (IndexError, OverflowError, TypeError, ValueError) as error:
            say_name(error, name)
            raise
        except AttributeError as error:
            wrong = next((arg for arg in args if not isinstance(arg, (*OPERANDS, NoneType))), error)
            if wrong is error:
                raise
            raise TypeError(
                f"{name}: expected a tensor, not a {type(wrong).__name__}: write Tensor(..)"
            ) from None
        note(name, result, (*nodes, *named.values()), draws_indices)
        made = wrap(result, bindings)
        return checks.part(made, args[0]) if is_view else made

    run.__name__ = name
    return precision.as_asked(entry.name, run)


def created(entry: Public, name: str) -> Callable[..., Any]:
    """A function that makes a tensor from nothing."""
    lifted = lift(entry, name)

    @wraps(lifted)
    def run(
        *args: Any, device: str | None = None, requires_grad: bool = False, **named: Any
    ) -> Any:
        result = lifted(*args, **named)
        if device is not None:
            result = result.to_device(device)
        if requires_grad:
            result.requires_grad = True
        return result

    return run


def alike(entry: Public, name: str) -> Callable[..., Any]:
    """A function that makes a tensor in the likeness of another, and on its device."""
    make = created(entry, name)

    @wraps(make)
    def run(
        *args: Any, device: str | None = None, requires_grad: bool = False, **named: Any
    ) -> Any:
        x = args[0] if args else named.get("input", named.get("x"))
        place = x.device if device is None and isinstance(x, Tensor) else device
        return make(*args, device=place, requires_grad=requires_grad, **named)

    return run


def drawn(entry: Public, name: str) -> Callable[..., Any]:
    """A random function: the key is drawn now, from the seeded sequence."""
    make = created(entry, name)

    @wraps(make)
    def run(
        *args: Any,
        generator_key: int | None = None,
        device: str | None = None,
        requires_grad: bool = False,
        **named: Any,
    ) -> Any:
        key = generator.next_key() if generator_key is None else generator_key
        return make(key, *args, device=device, requires_grad=requires_grad, **named)

    return run


def keyed(entry: Public, name: str) -> Callable[..., Any]:
    """A function that may draw: it takes a key from the seeded sequence when it does."""
    lifted = lift(entry, name)

    @wraps(lifted)
    def run(*args: Any, random_key: Any = generator.next_key, **named: Any) -> Any:
        return lifted(*args, random_key=random_key, **named)

    return run


def reading(entry: Public, name: str) -> Callable[..., Any]:
    """A function that may need to read a value before it knows the size of its result."""
    lifted = lift(entry, name)

    @wraps(lifted)
    def run(*args: Any, **named: Any) -> Any:
        bindings = NO_BINDINGS
        for arg in (*args, *named.values()):
            if isinstance(arg, Cell):
                bindings = bind(bindings, arg.bindings)
        return lifted(*args, read=partial(read_number, bindings), **named)

    return run


def operator(name: str, swapped: bool = False) -> Callable[[Tensor, Any], Any]:
    """A binary operator; NotImplemented for what is not a number or an array."""
    lifted = lift(METHODS[name], name)

    def run(self: Tensor, other: Any) -> Any:
        if not isinstance(other, OPERANDS) and not hasattr(other, "__array__"):
            if name not in COMPARISONS and isinstance(other, list | tuple | str):
                raise TypeError(
                    f"{name}: a {type(other).__name__} is no operand of a tensor: write Tensor(..)"
                )
            return NotImplemented
        return lifted(other, self) if swapped else lifted(self, other)

    return run


def has_in_place(entry: Public) -> bool:
    """Whether a name has a form that works in place: PyTorch's methods with one result do."""
    is_plain = entry.kind == "method" and entry.source == "PyTorch" and entry.results == "Node"
    return is_plain or entry.name in ALSO_IN_PLACE


def in_place(name: str) -> Callable[..., Tensor]:
    """`x.name_(..)`: the result is put into the cell x, in its dtype if that is of the same kind or
    a higher one (as PyTorch: a float64 into a float32, what is true as 1.0)."""
    entry = METHODS[name]
    plain = KINDS[entry.kind](entry, name)

    @wraps(plain)
    def run(self: Tensor, *args: Any, **named: Any) -> Tensor:
        result = plain(self, *args, **named)
        if RANKS[result.dtype.kind] > RANKS[self.dtype.kind]:
            raise TypeError(
                f"{name}_ gives {result.dtype}, which a tensor of {self.dtype} cannot hold in place"
            )
        if result.shape != self.shape:
            raise ValueError(
                f"{name}_ gives shape {result.shape}, which a tensor of shape {self.shape} cannot "
                "hold in place"
            )
        return self.assign(result.cast(self.dtype))

    run.__name__ = f"{name}_"
    run.__doc__ = f"`{name}`, with the result put into this tensor. Returns it."
    return run


def write_method(name: str) -> Callable[..., Tensor]:
    """`in_place`, as a method: what an operator writes, Python puts where it belongs."""
    return checks.kept(in_place(name))


def zero_(self: Tensor) -> Tensor:
    """Put 0 everywhere into this tensor. Returns it."""
    return self.assign(0)


def fill_(self: Tensor, value: Any) -> Tensor:
    """Put one value (a number or a 0-d tensor), cast, everywhere into this tensor. Returns it."""
    if isinstance(value, Tensor) and value.ndim:
        raise ValueError(f"fill_: the value has shape {value.shape}; copy_ puts many values")
    return copy_(self, value)


def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Put the values of another tensor or array, cast, broadcast and on this tensor's device, into
    this tensor, whatever `non_blocking` says. Returns it."""
    if isinstance(src, convert.NUMBERS):
        return self.assign(src)
    return self.assign(Tensor(src).to(dtype=self.dtype, device=self.device))


@elsewhere.as_pytorch
def uniform_(self: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Put uniform random numbers from `low` up to `high` into this tensor. Returns it."""
    return _drawn_into(self, Tensor.uniform(self.shape, low=low, high=high))


@elsewhere.as_pytorch
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Put normal random numbers of a mean and a deviation into this tensor. Returns it."""
    return _drawn_into(self, Tensor.normal(self.shape, mean=mean, std=std))


@elsewhere.as_pytorch
def exponential_(self: Tensor, lambd: float = 1.0) -> Tensor:
    """Put random waiting times of the rate `lambd` into this tensor. Returns it."""
    if lambd <= 0:
        raise ValueError(f"exponential_: the rate is above 0, not {lambd}")
    return _drawn_into(self, (-Tensor.rand(self.shape)).log1p() / -lambd)


@elsewhere.as_pytorch
def bernoulli_(self: Tensor, p: Any = 0.5) -> Tensor:
    """Put 1 with the probability p (a number, or a tensor of them), else 0, into this tensor.
    Returns it."""
    chance = p if isinstance(p, Tensor) else Tensor(float(p))
    return copy_(self, chance.broadcast_to(self.shape).bernoulli())


@elsewhere.as_pytorch
def random_(self: Tensor, low: int, high: int | None = None) -> Tensor:
    """Put random integers from `low` up to `high`, which is not one of them, into this tensor; of
    one number, from 0 up to it. Returns it."""
    first, end = (0, low) if high is None else (low, high)
    return copy_(self, Tensor.randint(first, end, self.shape))


@elsewhere.as_pytorch
def fill_diagonal_(self: Tensor, fill_value: float) -> Tensor:
    """Put a number into the diagonal of this tensor, of two dimensions, or of more that are equal.
    Returns it."""
    if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) > 1):
        raise ValueError(
            f"fill_diagonal_: a tensor of shape {self.shape} has no diagonal: it must have two "
            "dimensions, or more that are equal"
        )
    places = Tensor.arange(min(self.shape), device=self.device)
    changed = self.clone()
    changed[(places,) * self.ndim] = fill_value
    return self.assign(changed)


def _drawn_into(self: Tensor, numbers: Tensor) -> Tensor:
    if not self.dtype.is_float:
        raise TypeError(f"random floating-point numbers do not go into a tensor of {self.dtype}")
    return copy_(self, numbers)


def caster(name: str, dtype: DType) -> Callable[[Tensor], Tensor]:
    """The method that casts to one dtype."""

    def run(self: Tensor) -> Tensor:
        return self.cast(dtype)

    run.__name__ = name
    run.__doc__ = f"This tensor as {dtype}."
    return run


# the forms that work in place and have no other
WRITES: tuple[Callable[..., Tensor], ...] = (
    zero_,
    fill_,
    copy_,
    uniform_,
    normal_,
    exponential_,
    bernoulli_,
    random_,
    fill_diagonal_,
)

# kind of a public name -> what stands in the class for it
KINDS: dict[str, Callable[[Public, str], Any]] = {
    "method": lift,
    "property": lambda entry, name: property(lift(entry, name)),
    "creates": lambda entry, name: staticmethod(created(entry, name)),
    "like": alike,
    "random": lambda entry, name: staticmethod(drawn(entry, name)),
    "keyed": keyed,
    "reads": reading,
}


def function(name: str, table: dict[str, Public] = NAMESPACE) -> Callable[..., Any]:
    """The function `treadle.name`, or that of another table. KeyError if the table has none."""
    entry = table[name]
    made = KINDS[entry.kind](entry, name)
    return made.__func__ if isinstance(made, staticmethod) else made


class Late:
    """What stands in the class for a method until it is first used: it makes the method then, and
    puts it in its own place."""

    __slots__ = ("arguments", "make", "name")

    def __init__(self, name: str, make: Callable[..., Any], *arguments: Any) -> None:
        self.name = name
        self.make = make
        self.arguments = arguments

    def __get__(self, instance: Any, owner: type) -> Any:
        if self.make is write_method and getrefcount(instance) == checks.NOBODY_FINDS:
            checks.refuse_lost(instance, f"{self.name}(..)")
        made = self.make(*self.arguments)
        setattr(Vocabulary, self.name, made)
        return made.__get__(instance, owner)


def late(name: str, make: Callable[..., Any], *arguments: Any) -> None:
    """Let `make(*arguments)` be the method of this name."""
    setattr(Vocabulary, name, Late(name, make, *arguments))


def method(name: str) -> Any:
    """What stands in the class for a public name."""
    entry = METHODS[name]
    return KINDS[entry.kind](entry, name)


def attach() -> None:
    """Fill Vocabulary: every name of the table, the casts, the operators, and the forms that work
    in place."""
    for name, entry in METHODS.items():
        late(name, method, name)
        if has_in_place(entry):
            late(f"{name}_", write_method, name)
    for name, dtype in CASTS.items():
        late(name, caster, name, dtype)
    for write in WRITES:
        setattr(Vocabulary, write.__name__, checks.kept(write))
    Tensor.assign = checks.kept(Tensor.assign)  # type: ignore[method-assign]
    for short, name in OPERATORS.items():
        late(f"__{short}__", operator, name)
        late(f"__r{short}__", operator, name, True)
        late(f"__i{short}__", in_place, name)
    for short, name in COMPARISONS.items():
        late(f"__{short}__", operator, name)
    for short, name in UNARY.items():
        late(f"__{short}__", method, name)
    for name, instead in elsewhere.OF_TENSOR.items():
        setattr(Tensor, name, elsewhere.Elsewhere(name, instead))


attach()
