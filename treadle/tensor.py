"""Tensor: a cell that holds an array, with the vocabulary of NumPy and PyTorch.

Nothing runs until a value is needed. Most methods come from the table of public names
(`graph/public.py`), by way of `Vocabulary`. Here is what makes a Tensor a cell: creation, leaving,
assignment, gradients.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from sys import getrefcount
from types import ModuleType
from typing import Any

import numpy as np

from treadle import checks, convert, dims, elsewhere, exchange, generator, interop, printing
from treadle.collector import without_collector
from treadle.engine import device as devices
from treadle.engine import inside
from treadle.engine.cell import NO_BINDINGS, Cell, bind
from treadle.engine.failure import note
from treadle.engine.history import fold, is_tracked, requirer, track, unfold, untrack
from treadle.engine.jobs import device_of
from treadle.engine.realize import LOCK, realize
from treadle.engine.storage import memory
from treadle.engine.trace import forbid_reading
from treadle.graph import build, grad, indexing, shapes
from treadle.ir import dtype as dt
from treadle.ir import ops
from treadle.ir.dtype import DType
from treadle.ir.node import Node, toposort
from treadle.vocabulary import Vocabulary

# of the Array API standard: each is part of the next
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


class _Mode(threading.local):
    """What holds in this thread. recording: False inside no_grad(). narrow: the dtype of products
    inside `autocast`."""

    recording = True
    narrow: DType | None = None


mode = _Mode()


class Tensor(Vocabulary, Cell):
    """An array of one dtype on one device; lazy, never aliased.

    data: a number, nested lists of numbers, bytes, a NumPy array (copied), a Tensor, or anything
    with `__dlpack__` or `__array__`. dtype: a treadle dtype or its name; by default float32 for
    Python floats, int64 for ints, bool for bools, the array's own for arrays. device: "CPU", "C" or
    "INTERP". requires_grad: whether `backward` leaves a gradient here.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]) @ Tensor([1.0, 1.0])
    Tensor([3., 7.])
    """

    __slots__ = ("_grad", "_requires_grad", "_wholes")
    __array_priority__ = 1000
    _grad: Tensor | None
    manual_seed = staticmethod(generator.manual_seed)

    def __init__(
        self,
        data: Any,
        dtype: DType | str | None = None,
        device: str | None = None,
        requires_grad: bool = False,
    ) -> None:
        place = devices.canonical(device)
        if isinstance(data, Tensor):
            node, bindings = data.node, data.bindings
            if device is not None and data.device != place:
                node = convert.moved(data.node, place)
            if dtype is not None:
                node = build.cast(node, convert.as_dtype(dtype))
        else:
            node = convert.to_node(data, None if dtype is None else convert.as_dtype(dtype), place)
            bindings = NO_BINDINGS
        super().__init__(node, bindings)
        self._grad = None
        self._requires_grad = False
        if requires_grad and not isinstance(data, Tensor) and node.op is ops.BUFFER:
            self._require_own(node)  # nobody else holds this leaf
        elif requires_grad:
            self.requires_grad = True

    @staticmethod
    def from_numpy(array: np.ndarray) -> Tensor:
        """A tensor with the values of a NumPy array, which are copied. TypeError for anything else.

        >>> Tensor.from_numpy(np.arange(3))
        Tensor([0, 1, 2])
        """
        if not isinstance(array, np.ndarray):
            raise TypeError(
                f"from_numpy: expected a NumPy array, not {type(array).__name__}: use Tensor(..)"
            )
        return Tensor(array)

    @staticmethod
    def from_blob(
        address: int, shape: tuple[int, ...], dtype: DType | str = dt.float32, **named: Any
    ) -> Tensor:
        """A tensor with the values that stand in memory from an address on, in row-major order;
        they are copied. Whoever gives the address vouches for it. `named`: as of `Tensor`.

        Source: tinygrad.

        >>> array = np.arange(3)
        >>> Tensor.from_blob(array.ctypes.data, (3,), treadle.int64)
        Tensor([0, 1, 2])
        """
        kind = convert.as_dtype(dtype)
        return Tensor(convert.blob(address, shape, kind), **named).to(dtype=kind)

    @staticmethod
    def from_url(url: str, gunzip: bool = False, **named: Any) -> Tensor:
        """The bytes that an address of the web (or "file:..") gives, as uint8; gunzip: unpacked.
        OSError if there is no answer. `named`: as of `Tensor`. Source: tinygrad."""
        return Tensor(convert.fetched(url, gunzip), **named)

    @classmethod
    def _of(cls, node: Node, bindings: dict[str, int] = NO_BINDINGS) -> Tensor:
        """The Tensor of a node; inside `no_grad` no gradient flows back through it."""
        self = object.__new__(cls)
        Cell.__init__(self, node if mode.recording else build.stop_gradient(node), bindings)
        self._grad = None
        self._requires_grad = False
        return self

    def __dir__(self) -> list[str]:
        """The attributes, without those that put a result into the tensor (`add_` where there is
        `add`) and what only says what to write instead: Python makes no suggestion for a mistyped
        name among more than 750."""
        names = {name for name in super().__dir__() if name not in elsewhere.OF_TENSOR}
        return sorted(n for n in names if not (n.endswith("_") and n[:-1] in names))

    # ---- what it is ------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes, outermost first: ints, or Dims where a Variable is involved."""
        return tuple([s if type(s) is int else dims.dim(s, self.bindings) for s in self.node.shape])

    @property
    def dtype(self) -> DType:
        dtype: DType = self.node.dtype
        return dtype

    @property
    def device(self) -> str:
        """The name of the device that holds the value, or will compute it."""
        return device_of(self.node)

    @property
    def ndim(self) -> int:
        return len(self.node.shape)

    def dim(self) -> int:
        """The number of axes."""
        return len(self.node.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(dims.values(self.node.shape, self.bindings))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[shapes.normalize_axis(dim, self.ndim)]

    def __len__(self) -> int:
        if not self.node.shape:
            raise TypeError("len() of a 0-d tensor")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if not self.node.shape:
            raise TypeError("iteration over a 0-d tensor")
        if isinstance(self.node.shape[0], int):
            return (self[i] for i in range(len(self)))
        return (self[Tensor(i)] for i in range(len(self)))  # inside the size that is bound

    def __contains__(self, value: Any) -> bool:
        """Whether some element equals a value."""
        found = self == value
        return isinstance(found, Tensor) and bool(found.any())

    __hash__ = Cell.__hash__

    # ---- values ----------------------------------------------------------------------------------
    def realize(self, *others: Tensor) -> Tensor:
        """Compute this tensor (and others) now, as one program. Returns itself."""
        realize((self, *others))
        return self

    def numpy(self) -> np.ndarray:
        """The value as a NumPy array of one's own (bfloat16 as float32)."""
        forbid_reading("numpy()", self.node)
        with LOCK:
            realize((self,))
            sizes = dims.values(self.node.shape, self.bindings)
            stored = memory[self.node].array(self.dtype, sizes)
            return dt.to_compute(self.dtype, np.array(stored))

    def tolist(self) -> Any:
        """The value as nested lists of Python numbers."""
        forbid_reading("tolist()", self.node)
        return self.numpy().tolist()

    def item(self) -> Any:
        """The one element as a Python number. ValueError if there is not exactly one."""
        forbid_reading("item()", self.node)
        if self.numel() != 1:
            raise ValueError(f"item() needs a tensor of one element, not of shape {self.shape}")
        return self.numpy().item()

    def __bool__(self) -> bool:
        forbid_reading("a condition (if, while, and, or, not)", self.node)
        if self.numel() != 1:
            raise ValueError(
                f"the truth of a tensor of shape {self.shape} is ambiguous: use .any() or .all()"
            )
        return bool(self.item())

    def __int__(self) -> int:
        forbid_reading("int()", self.node)
        return int(self.item())

    def __complex__(self) -> complex:
        forbid_reading("complex()", self.node)
        return complex(self.item())

    def __float__(self) -> float:
        forbid_reading("float()", self.node)
        return float(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iub" or self.numel() != 1:
            raise TypeError("only an integer tensor of one element can be an index")
        return int(self.item())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a treadle tensor is always copied into a NumPy array")
        if self.requires_grad:
            raise RuntimeError(
                "this tensor requires a gradient, which NumPy does not know: give x.detach(), or "
                "join tensors by treadle.stack"
            )
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
        return interop.ufunc(self.__array_namespace__(), function, method, inputs, named)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        return interop.function(function, args, named)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The module `treadle`, whose functions follow the Array API standard 2024.12."""
        if api_version is not None and api_version not in VERSIONS:
            raise ValueError(
                f"there is no version {api_version!r} of the Array API standard here; there are "
                f"{', '.join(VERSIONS)}"
            )
        return sys.modules[__package__]

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The memory of this tensor as a capsule of DLPack, without a copy unless asked. This
        library never overwrites it from then on; what others write there shows here."""
        return exchange.lent(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's name of the memory's place: the CPU's, number 0."""
        return exchange.CPU

    def __format__(self, spec: str) -> str:
        return format(self.item() if spec else repr(self), spec)

    def __repr__(self) -> str:
        forbid_reading("printing", self.node)
        return printing.show(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return Tensor(self.numpy(), self.dtype, self.device, self._requires_grad)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tensor, (self.numpy(), self.dtype, self.device, self._requires_grad)

    # ---- writing ---------------------------------------------------------------------------------
    def assign(self, value: Any) -> Tensor:
        """Put a new value of the same shape and dtype into this cell (in place in memory when
        nothing else needs the old one). Returns itself."""
        node, bindings = convert.operand(value, self)
        if node.shape != self.node.shape:
            try:
                node = build.expand(node, self.node.shape)
            except ValueError:
                raise ValueError(
                    f"assign: a value of shape {shapes.text(node.shape)} does not fit a tensor of "
                    f"shape {shapes.text(self.node.shape)}"
                ) from None
        if node.dtype is not self.dtype:
            raise TypeError(
                f"assign: the value is {node.dtype}, the tensor {self.dtype}; cast it: "
                f".cast({self.dtype})"
            )
        self._put(node, bindings)
        return self

    def _put(self, node: Node, bindings: dict[str, int]) -> None:
        if self._requires_grad and mode.recording:
            raise RuntimeError(
                "this tensor requires a gradient and is changed in place: wrap it in "
                "`with treadle.no_grad():`, or write x = x + .. to make a new tensor"
            )
        if inside.scopes:
            inside.forbid_change(self, "an assignment")
        with LOCK:  # what changes during a trace is what the traced function does
            if self._requires_grad:
                self._track(memory.defer(build.stop_gradient(node), self.device, self.node))
                return
            self.bindings = bind(self.bindings, bindings)
            target = self.target
            if target is None and self.node.op is ops.BUFFER and not memory.is_deferred(self.node):
                target = self.node
            self.hold(node if mode.recording else build.stop_gradient(node), target)

    def __setitem__(self, key: Any, value: Any) -> None:
        if getrefcount(self) == checks.NOBODY:
            raise checks.lost()
        node, bindings = convert.operand(value, self)
        place, more = convert.index_key(key, self)
        read = partial(read_number, bind(self.bindings, more))
        new = indexing.setitem(self.node, place, node, read)
        note("x[..] = value", new, place)
        self._put(new, bind(bind(self.bindings, bindings), more))

    def __getitem__(self, key: Any) -> Tensor:
        place, bindings = convert.index_key(key, self)
        own = bind(self.bindings, bindings)
        node = indexing.getitem(self.node, place, partial(read_number, own))
        note("x[..]", node, place)
        return checks.part(Tensor._of(node, own), self, place)

    # ---- gradients -------------------------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        """Whether a gradient flows back to this tensor or through it."""
        if self._requires_grad:
            return True
        root, _ = unfold(self.node)
        order = toposort(root)
        leaves = [n for n in order if is_tracked(n)]
        return bool(leaves) and root in grad.reaching(order, leaves)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value == self.requires_grad:
            return
        if value:
            self._require_own(memory.defer(build.stop_gradient(self.node), self.device))
        elif not self._requires_grad:
            raise RuntimeError(
                "a gradient flows through this tensor because it was computed from one that "
                "requires it: use .detach()"
            )
        else:
            self._requires_grad = False
            untrack(self.node)
            memory.moves += 1  # captured functions look again at the tensors that they use

    @property
    def grad(self) -> Tensor | None:
        """The sum of the gradients that `backward` left here; None if there is none. TypeError or
        ValueError for another dtype, shape or device than the tensor's."""
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            checks.fits_as_gradient(self, value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad`. Returns itself."""
        self.requires_grad = requires_grad
        return self

    def _require_own(self, leaf: Node) -> None:
        """Require a gradient, as a leaf that stands for this tensor alone."""
        if not self.dtype.is_inexact:
            raise TypeError(
                f"only floating-point and complex tensors can require a gradient, not {self.dtype}"
            )
        self._requires_grad = True
        self._track(leaf)

    def _track(self, leaf: Node) -> None:
        """This cell is `leaf` from now on, and its gradient is wanted."""
        self.hold(leaf, self.target)
        track(self, leaf)

    @property
    def is_leaf(self) -> bool:
        """Whether `backward` would leave a gradient here (or no gradient is involved)."""
        return self._requires_grad or not self.requires_grad

    @elsewhere.as_pytorch
    def clone(self) -> Tensor:
        """The same value in memory of its own; gradients flow through."""
        return Tensor._of(ops.CONTIGUOUS(self.node), self.bindings)

    @elsewhere.as_pytorch
    def contiguous(self) -> Tensor:
        """The same value; every tensor is contiguous in memory."""
        return Tensor._of(self.node, self.bindings)

    def detach(self) -> Tensor:
        """The same value, through which no gradient flows."""
        return checks.part(Tensor._of(build.stop_gradient(self.node), self.bindings), self)

    @property
    def data(self) -> Tensor:
        """The value, detached."""
        return self.detach()

    @without_collector
    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Add d self / d x to `x.grad` for every tensor x that requires a gradient.

        gradient: the cotangent, of this tensor's shape; may be left out for one element.
        retain_graph: True or not, a graph stays for as long as a tensor holds it.
        create_graph: let the gradients be differentiated in their turn.
        inputs: leave gradients in these only. RuntimeError if nothing below requires a gradient.
        """
        seed = self._seed(gradient)
        root, folded = unfold(self.node)
        leaves = [n for n in toposort(root) if is_tracked(n)]
        if inputs is not None:
            chosen = {id(x) for x in ((inputs,) if isinstance(inputs, Tensor) else inputs)}
            leaves = [leaf for leaf in leaves if id(requirer(leaf)) in chosen]
        nodes = grad.gradients([root], [seed], leaves, unreached="none")
        found = {leaf: node for leaf, node in zip(leaves, nodes, strict=True) if node is not None}
        if not leaves:
            raise RuntimeError(
                "backward: no tensor that this one depends on has requires_grad=True"
                if inputs is None
                else "backward: this tensor depends on none of inputs= that has requires_grad=True"
            )
        if not found:
            raise RuntimeError(
                "backward: no gradient flows from this tensor to one with requires_grad=True: what "
                "is between them is detached, an integer, or a comparison"
            )
        if inside.scopes:
            for leaf in found:
                cell = requirer(leaf)
                if cell is not None:
                    inside.forbid_change(cell, "backward()")
        with LOCK:
            for leaf, node in zip(found, fold(found.values(), folded), strict=True):
                cell = requirer(leaf)
                if isinstance(cell, Tensor):  # None: nobody holds it any more
                    kept = node if create_graph else build.stop_gradient(node)
                    new = Tensor._of(kept, self.bindings)
                    cell._grad = new if cell._grad is None else cell._grad + new

    def gradient(self, *targets: Tensor, gradient: Any = None) -> list[Tensor]:
        """d self / d target for each target, as tensors; nothing is accumulated."""
        root, folded = unfold(self.node)
        wanted = [unfold(target.node)[0] for target in targets]
        nodes = fold(grad.gradients([root], [self._seed(gradient)], wanted), folded)
        return [Tensor._of(node, self.bindings) for node in nodes]

    def _seed(self, gradient: Any) -> Node:
        """The cotangent of this tensor: what was given, or 1."""
        if gradient is not None:
            node, _ = convert.operand(gradient, self)
            if not shapes.same_shape(node.shape, self.node.shape):
                raise ValueError(
                    f"backward: gradient has shape {shapes.text(node.shape)}, the tensor "
                    f"{shapes.text(self.node.shape)}: they must be equal"
                )
            return build.cast(build.expand(node, self.node.shape), self.dtype)
        if self.numel() != 1:
            raise RuntimeError(
                f"backward of a tensor of shape {self.shape} needs `gradient=`, a tensor of that "
                "shape; only one element has a gradient by itself"
            )
        if self.dtype.is_complex:
            raise RuntimeError(
                f"backward of a {self.dtype} tensor needs `gradient=`: only real numbers have a "
                "gradient by themselves; take abs(x), x.real or x.imag first"
            )
        return build.const(1, self.dtype, self.node.shape)

    # ---- devices ---------------------------------------------------------------------------------
    @elsewhere.as_pytorch
    def to(
        self,
        *where: Any,
        dtype: DType | str | None = None,
        device: str | None = None,
        non_blocking: bool = False,
        copy: bool = False,
    ) -> Tensor:
        """This tensor as another dtype and/or on another device: `x.to("C")`, `x.to(float16)`.
        The result never shares memory with this tensor, whatever `non_blocking` and `copy` say."""
        for what in where:
            if what is None or isinstance(what, bool):
                continue
            if isinstance(what, DType) or (isinstance(what, str) and what in dt.BY_NAME):
                dtype = what
            elif isinstance(what, Tensor):
                dtype, device = what.dtype, what.device
            elif isinstance(what, str) and what.upper() in devices.PLUGINS:
                device = what
            else:
                raise ValueError(
                    f"to: there is no device or dtype {what!r}; devices are "
                    f"{', '.join(devices.PLUGINS)}, dtypes {', '.join(map(repr, dt.DTYPES))}"
                )
        node = self.node
        if device is not None:
            node = convert.moved(node, devices.canonical(device))
        if dtype is not None:
            node = convert.cast(node, convert.as_dtype(dtype))
        return Tensor._of(node, self.bindings)

    def cast(self, dtype: DType | str) -> Tensor:
        """This tensor as another dtype: rounded to nearest, floats to integers truncated and
        saturated with NaN as 0, integers wrapped, imaginary parts left out with a warning
        (docs/numerics.md)."""
        return self.to(dtype=dtype)

    def to_device(self, device: str, /, *, stream: Any = None) -> Tensor:
        """This tensor on another device (Array API). NotImplementedError for a stream."""
        if stream is not None:
            raise NotImplementedError(f"to_device: stream={stream!r}: there are no streams here")
        return self.to(device=device)

    def cpu(self) -> Tensor:
        """This tensor on the device CPU."""
        return self.to(device="CPU")


@elsewhere.as_pytorch
def tensor(
    data: Any,
    dtype: DType | str | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor with the values of `data`: `Tensor(data, ..)`, but no gradient flows back into
    one that is given. Source: PyTorch.

    >>> treadle.tensor([1, 2])
    Tensor([1, 2])
    """
    given = data.detach() if isinstance(data, Tensor) else data
    return Tensor(given, dtype, device, requires_grad)


@contextmanager
def enable_grad() -> Iterator[None]:
    """Inside, gradients are recorded again, also within `no_grad()`. Source: PyTorch.

    >>> w = Tensor([2.0], requires_grad=True)
    >>> with no_grad():
    ...     with enable_grad():
    ...         y = w * 3
    >>> y.requires_grad
    True
    """
    before, mode.recording = mode.recording, True
    try:
        yield
    finally:
        mode.recording = before


@contextmanager
def no_grad() -> Iterator[None]:
    """Inside, results do not carry gradients, and tensors that require one may be assigned.
    Source: PyTorch.

    >>> w = Tensor([2.0], requires_grad=True)
    >>> with no_grad():
    ...     w -= 0.5
    >>> w
    Tensor([1.5], requires_grad=True)
    """
    before, mode.recording = mode.recording, False
    try:
        yield
    finally:
        mode.recording = before


def read_number(
    bindings: dict[str, int], what: str, number: Node, *others: Node
) -> tuple[int, tuple[Node, ...]]:
    """Run a node of shape () and others, as one program: its value, and the others as leaves. what:
    the call that reads it, for the error inside `jit`."""
    forbid_reading(what, number)
    cells = [Tensor._of(node, bindings) for node in (number, *others)]
    realize(cells)
    return int(cells[0].item()), tuple([cell.node for cell in cells[1:]])
