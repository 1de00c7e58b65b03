"""What a kernel means, whatever its schedule: `interpret(kernel, arrays, scalars, variables)`.

Every leaf of a statement is an axis of NumPy arrays. A scratch buffer is the whole array of its
logical places, once for each iteration of its home (the loops that its writer and its readers
share); so neither the order of loops nor where memory lies has a part in the meaning. Actions must
keep it: tests run a kernel before and after and compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod

import numpy as np

from treadle.ir import index, ops
from treadle.ir.dtype import DType, from_compute, round_to, to_compute
from treadle.ir.monoid import find, places
from treadle.ir.node import Node, toposort
from treadle.kernel.kernel import Extent, Kernel, Leaf, Stmt, home, loads

Array = np.ndarray
Numbers = Mapping[str, int]

# max and min are not among them: NumPy's do not order the zeros
_UFUNCS = {
    "add": np.add, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
}  # fmt: skip


def interpret(
    kernel: Kernel,
    arrays: Mapping[int, Array],
    scalars: Sequence[int | float | bool] = (),
    variables: Numbers | None = None,
) -> None:
    """Runs the kernel on arrays (by position, in their dtype's storage), writing in place.

    scalars: the values of the SCALAR leaves by number; variables: by name. IndexError if a checked
    index is out of range.
    """
    run = _Run(kernel, arrays, scalars, variables or {})
    for statement in kernel.statements:
        run.statement(statement)


class _Run:
    """The arrays of a kernel that is being interpreted, and its scratch buffers."""

    def __init__(
        self,
        kernel: Kernel,
        arrays: Mapping[int, Array],
        scalars: Sequence[int | float | bool],
        variables: Numbers,
    ) -> None:
        self.kernel = kernel
        self.arrays = arrays
        self.scalars = scalars
        self.variables = variables
        self.scratch: dict[str, tuple[Array, tuple[int, ...]]] = {}  # with the least place per axis
        self.places = self._scratch_places()
        self.present: dict[int, tuple[int, int]] = {}  # the axes of the statement that is run

    def size(self, extent: Extent) -> int:
        """An extent as a number; the greatest of one that depends on other leaves."""
        if isinstance(extent, int):
            return extent
        return index.bounds(extent)[1] if extent.free else index.evaluate(extent, self.variables)

    def _scratch_places(self) -> dict[str, list[tuple[Stmt, tuple[Node, ...]]]]:
        places: dict[str, list[tuple[Stmt, tuple[Node, ...]]]] = {}
        for statement in self.kernel.statements:
            for target in statement.targets:
                places.setdefault(target.arg[0], []).append((statement, statement.index))
            for load in loads(statement):
                at = load.src[1 : 1 + load.arg]
                places.setdefault(load.src[0].arg[0], []).append((statement, at))
        return places

    # ---- expressions -----------------------------------------------------------------------------
    def axes(self, statement: Stmt) -> dict[int, tuple[int, int]]:
        """leaf number -> (axis, extent)."""
        found: dict[int, tuple[int, int]] = {}
        for axis, name in enumerate(statement.order):
            leaf = self.kernel.leaves[name]
            found[leaf.number] = (axis, self.size(leaf.extent))
        return found

    def evaluate(
        self, roots: Sequence[Node], axes: dict[int, tuple[int, int]]
    ) -> dict[Node, Array]:
        """Every node below the roots as an array over the axes."""
        rank = len(axes)
        values: dict[Node, Array] = {}
        for node in toposort(roots):
            if node.op is ops.RANGE:
                axis, extent = axes[node.arg[0]]
                shape = [extent if a == axis else 1 for a in range(rank)]
                values[node] = np.arange(extent, dtype=np.int64).reshape(shape)
            elif node.op is not ops.ARG:
                src = [values[s] for s in node.src if s.op is not ops.ARG]
                values[node] = self.apply(node, src)
        return values

    def apply(self, node: Node, src: list[Array]) -> Array:
        """The value of a node that is no range, given those of its sources."""
        if node.op is ops.LOAD:
            return self.load(node, src[: node.arg], src[node.arg] if len(src) > node.arg else None)
        if node.op is ops.CONST:
            return np.asarray(node.value, dtype=node.dtype.compute)
        if node.op is ops.SCALAR:
            return np.asarray(self.scalars[node.arg], dtype=node.dtype.compute)
        if node.op is ops.VARIABLE:
            return np.asarray(self.variables[node.arg[0]], dtype=np.int64)
        if node.op is ops.CHECK:
            if np.any((src[0] < 0) | (src[0] >= src[1])):
                raise IndexError(f"check {node.arg}: an index is out of range")
            return src[0]
        if node.op in _INDEX_MEANING:
            return _INDEX_MEANING[node.op](node, *src)
        assert node.op.meaning is not None
        value: Array = node.op.meaning(node, *src)
        return round_to(node.dtype, value)

    def load(self, node: Node, place: list[Array], guard: Array | None) -> Array:
        """Elements of a buffer; where the guard is false, or outside, 0."""
        array, low = self.buffer(node.src[0])
        place = [*self.home_axes(node.src[0].arg[0]), *place]
        inside = np.asarray(True) if guard is None else guard
        at = []
        for i, size, first in zip(place, array.shape, low):
            inside = inside & (i >= first) & (i < first + size)
            at.append(np.clip(i - first, 0, max(size - 1, 0)))
        if array.size == 0:
            return np.zeros(np.broadcast_shapes(inside.shape, *(a.shape for a in at)), array.dtype)
        values = to_compute(node.dtype, array[tuple(at)] if at else array[()])
        return np.where(inside, values, np.zeros((), values.dtype))

    def home(self, name: int | str) -> list[Leaf]:
        """The leaves of a scratch buffer's home."""
        if not isinstance(name, str):
            return []
        return [self.kernel.leaves[leaf] for leaf in home(self.kernel, name)]

    def home_axes(self, name: int | str) -> list[Array]:
        """The iteration of a scratch buffer's home, over the axes of the present statement."""
        found = []
        for leaf in self.home(name):
            axis, extent = self.present[leaf.number]
            shape = [extent if a == axis else 1 for a in range(len(self.present))]
            found.append(np.arange(extent).reshape(shape))
        return found

    def buffer(self, node: Node) -> tuple[Array, tuple[int, ...]]:
        """(array, least place per axis) of a buffer."""
        where = node.arg[0]
        if isinstance(where, str):
            return self.scratch[where]
        array = self.arrays[where]
        shape = tuple(self.size(size) for size in node.shape)
        elements = prod(shape)  # the caller's array may have more
        return array.reshape(-1)[:elements].reshape(shape), (0,) * len(shape)

    def valid(self, statement: Stmt, axes: dict[int, tuple[int, int]]) -> Array:
        """Which points exist."""
        ranges = {self.kernel.range_of[name].name for name in statement.order}
        found = np.asarray(True)
        for name in sorted(ranges):
            owner = self.kernel.ranges[name]
            value = self.kernel.over_leaves(owner.node)
            # a copy for a whole block has the outer leaves of the range only
            absent = {n: 0 for n in toposort(value) if n.op is ops.RANGE and n.arg[0] not in axes}
            value = index.substitute(value, absent) if absent else value
            extent = index.as_node(owner.extent)
            known = self.evaluate([value, extent], axes)
            found = found & (known[value] < known[extent])
        return found

    # ---- statements ------------------------------------------------------------------------------
    def statement(self, statement: Stmt) -> None:
        """Runs one statement for all its points."""
        axes = self.present = self.axes(statement)
        shape = tuple(extent for _, extent in axes.values())
        if not statement.is_store:
            self._allocate(statement)
        if 0 in shape and not statement.reduced:
            return
        over = self.kernel.over_leaves
        found = self.evaluate([over(root) for root in statement.roots], axes)
        valid = np.broadcast_to(self.valid(statement, axes), shape)
        values = [np.broadcast_to(found[over(v)], shape) for v in statement.values]
        place = [
            np.broadcast_to(i, shape)
            for i in (
                *self.home_axes(statement.targets[0].arg[0]),
                *(found[over(i)] for i in statement.index),
            )
        ]
        if statement.reduced:
            self._reduce(statement, values, place, valid)
            return
        if statement.guard is not None:
            valid = valid & found[over(statement.guard)]
        array, low = self.buffer(statement.targets[0])
        stored = from_compute(statement.targets[0].dtype, values[0])
        at = tuple((i - first)[valid] for i, first in zip(place, low))
        if statement.monoid is None:
            last = stored[valid]
            array[at] = last if at else last[-1:].reshape(())
        else:
            self._combine_in_order(statement, array, at, values[0][valid])

    def _allocate(self, statement: Stmt) -> None:
        for target in statement.targets:
            shape = [self.size(leaf.extent) for leaf in self.home(target.arg[0])]
            low = [0] * len(shape)
            for dimension in range(len(statement.index)):
                least, greatest = 0, 0
                for user, place in self.places[target.arg[0]]:
                    position = self.kernel.over_leaves(place[dimension])
                    at = self.evaluate([position], self.axes(user))[position]
                    if at.size:
                        least = min(least, int(at.min()))
                        greatest = max(greatest, int(at.max()))
                low.append(least)
                shape.append(greatest - least + 1)
            self.scratch[target.arg[0]] = (np.zeros(shape, target.dtype.storage), tuple(low))

    def _reduce(
        self, statement: Stmt, values: list[Array], place: list[Array], valid: Array
    ) -> None:
        reduced = tuple(n for n, name in enumerate(statement.order) if name in statement.reduced)
        kept = [n for n in range(len(statement.order)) if n not in reduced]
        dtypes = [target.dtype for target in statement.targets]
        monoid = find(statement.monoid or "")
        identities = [
            np.asarray(monoid.identity(component, dtype), dtype.compute)
            for component, dtype in enumerate(dtypes)
        ]
        filled = []
        for value, identity in zip(values, identities):
            moved = np.where(valid, value, identity).transpose(*reduced, *kept)
            points = prod(moved.shape[: len(reduced)])
            filled.append(moved.reshape(points, *moved.shape[len(reduced) :]))
        result = _fold(statement.monoid or "", filled, dtypes)
        first = tuple(0 if n in reduced else slice(None) for n in range(len(statement.order)))
        for target, value, identity in zip(statement.targets, result, identities):
            array, low = self.scratch[target.arg[0]]
            stored = from_compute(target.dtype, value)
            if not place:
                array[()] = stored
            elif valid.size:
                exists = valid.any(axis=reduced)
                at = tuple((i[first] - least)[exists] for i, least in zip(place, low))
                array[at] = stored[exists]
            else:
                array[...] = from_compute(target.dtype, identity)

    def _combine_in_order(
        self, statement: Stmt, array: Array, at: tuple[Array, ...], values: Array
    ) -> None:
        dtype = statement.targets[0].dtype
        for number in range(len(values)):
            where = tuple(i[number] for i in at)
            old = to_compute(dtype, np.asarray(array[where]))
            pair = [np.stack([old, values[number]])]
            array[where] = from_compute(dtype, _fold(statement.monoid or "", pair, [dtype])[0])


def _fold(monoid: str | Node, states: list[Array], dtypes: list[DType]) -> list[Array]:
    """States combined along the first axis; one array per component."""
    if isinstance(monoid, str) and monoid in _UFUNCS:
        ufunc = _UFUNCS[monoid]
        identity = find(monoid).identity(0, dtypes[0])
        first = np.asarray(identity, states[0].dtype)
        with np.errstate(all="ignore"):
            folded = ufunc.reduce(states[0], axis=0, dtype=states[0].dtype, initial=first)
        return [round_to(dtypes[0], np.asarray(folded))]
    parameters, roots = _template(monoid, tuple(dtypes))
    now = [
        np.full(s.shape[1:], find(monoid).identity(n, d), s.dtype)
        for n, (s, d) in enumerate(zip(states, dtypes))
    ]
    order = toposort(roots)
    for step in range(len(states[0])):
        values: dict[Node, Array] = dict(zip(parameters, [*now, *(s[step] for s in states)]))
        for node in order:
            if node not in values:
                assert node.op.meaning is not None
                values[node] = node.op.meaning(node, *(values[s] for s in node.src))
        now = [values[root] for root in roots]
    return now


@cache
def _template(
    monoid: str | Node, dtypes: tuple[DType, ...]
) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    first, second = places(dtypes)
    return (*first, *second), find(monoid).combine(first, second)


def _sum(node: Node, *atoms: Array) -> Array:
    total = np.asarray(node.arg[0], np.int64)
    for atom, factor in zip(atoms, node.arg[1]):
        total = total + factor * atom
    return total


def _product(node: Node, *factors: Array) -> Array:
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result


_INDEX_MEANING: dict[ops.Op, Callable[..., Array]] = {
    ops.ISUM: _sum,
    ops.IPROD: _product,
    ops.IFLOOR: lambda node, a, b: np.floor_divide(a, np.where(b == 0, 1, b)),
    ops.IMOD: lambda node, a, b: np.remainder(a, np.where(b == 0, 1, b)),
    ops.IMAX: lambda node, a, b: np.maximum(a, b),
    ops.IMIN: lambda node, a, b: np.minimum(a, b),
}
