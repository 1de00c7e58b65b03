"""How a function becomes a `Captured`: it is called with stand-ins, and what it did is looked up.

Before the trace everything pending is computed, so that what is pending afterwards is what the
function did. Its effects are found by comparing every live tensor with what it held before: a value
assigned, a gradient set. Then all tensors are put back: the first call is a replay like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from treadle.collector import without_collector
from treadle.engine import device as devices
from treadle.engine import inside, trace
from treadle.engine.capture import Captured
from treadle.engine.cell import NO_BINDINGS, Cell, bind, live, with_values
from treadle.engine.guards import PLAIN, Guards, Item
from treadle.engine.history import carries_gradient, remember, track, untrack
from treadle.engine.jobs import settled
from treadle.engine.realize import realize
from treadle.engine.recipe import Effect, Gradient, Recipe
from treadle.engine.storage import memory
from treadle.engine.trace import JitError, Trace
from treadle.generator import next_keys
from treadle.graph.body import substitute
from treadle.graph.build import const
from treadle.graph.call import inline
from treadle.graph.tree import Structure, flatten, unflatten
from treadle.ir import ops
from treadle.ir.dtype import float64, uint64
from treadle.ir.node import Node, toposort
from treadle.tensor import Tensor


@dataclass(frozen=True)
class Result:
    """A leaf of a captured result: the tensor of this number."""

    number: int


@dataclass
class Traced:
    """What a trace gives. leaves: of the result's tree, Results and values; keys: the random keys
    of the first call; learning: closed-over tensors that have or may get gradients; rebound: places
    outside where the function puts new tensors, with the number of each; sizes: the values of
    Variables that it has looked at."""

    captured: Captured
    structure: Structure
    leaves: list[Any]
    keys: list[int]
    learning: list[Tensor]
    rebound: list[tuple[Item, int]]
    sizes: dict[str, int]


@dataclass
class Given:
    """The arguments of a call, sorted. tensors: each once; places: what each leaf of the tree is,
    ("tensor", number), ("float", number) or ("fixed", value); the words: how a message calls each
    tensor and float; donated: numbers of tensors; objects: those that are neither tensors nor plain
    values."""

    structure: Structure
    tensors: list[Tensor] = field(default_factory=list)
    floats: list[float] = field(default_factory=list)
    places: list[tuple[str, Any]] = field(default_factory=list)
    tensor_words: list[str] = field(default_factory=list)
    float_words: list[str] = field(default_factory=list)
    donated: tuple[int, ...] = ()
    objects: list[Any] = field(default_factory=list)


@without_collector
def trace_function(function: Callable[..., Any], name: str, given: Given, guards: Guards) -> Traced:
    """Trace one call. guards: what the function reaches from outside. The lock is held."""
    _settle()
    before = _Before()
    with trace.tracing(name) as tracing:
        try:
            work = _Work(given, guards, before, tracing)
            args, named = work.arguments()
            numbers = [make(node, NO_BINDINGS) for node in work.floats[len(given.floats) :]]
            guards.put(numbers)
            try:
                result = function(*args, **named)
            finally:
                guards.take_back(numbers)
            work.look(result, guards)
            del args, named, result
            recipe = work.recipe()
        except BaseException:
            before.put_back_new()
            raise
        finally:
            before.restore()
    keys = next_keys(len(tracing.keys))
    work.rebase(keys)
    captured = Captured(recipe, make)
    everyone = [*given.tensors, *recipe.cells]
    learning: dict[int, Any] = {}
    if guards.opaque or guards.refreshers or not guards.names.isdisjoint(("grad", "backward")):
        reached = (*guards.cells, *recipe.cells)
        learning = {id(t): t for t in reached if isinstance(t, Tensor) and t._requires_grad}
    learning |= {id(everyone[owner]): everyone[owner] for owner in recipe.gradients}
    for gradient in recipe.new_gradients:  # of these `Gradients` sees to it
        if gradient.root >= 0:
            learning.pop(id(everyone[gradient.owner]), None)
    for tensor in given.tensors:  # the signature has it
        learning.pop(id(tensor), None)
    bindings = NO_BINDINGS
    for tensor in given.tensors:
        bindings = bind(bindings, tensor.bindings)
    sizes = {name: bindings[name] for name in sorted(tracing.sizes) if name in bindings}
    waiting = list(learning.values())
    return Traced(captured, work.structure, work.result, keys, waiting, work.rebound, sizes)


_new, _begin = object.__new__, Cell.__init__


def make(leaf: Node, bindings: dict[str, int]) -> Tensor:
    """The Tensor of a leaf."""
    tensor = _new(Tensor)
    _begin(tensor, leaf, bindings)
    tensor._grad = None
    tensor._requires_grad = False
    return tensor


def flows(tensor: Tensor) -> bool:
    """Whether a gradient flows to a tensor or through it. (It is a leaf in memory.)"""
    return tensor._requires_grad or carries_gradient([tensor.node])


# ---- before --------------------------------------------------------------------------------------
def _settle() -> None:
    """Compute everything that is pending, and give every tensor a leaf of its own."""
    pending = [cell for cell in live() if not settled(cell)]
    if inside.some_are_left():
        pending = with_values(dict(zip(pending, resolved([cell.node for cell in pending]))))
    try:
        realize(pending)
    except Exception:
        for cell in pending:  # one that cannot be computed is no business of this function
            with suppress(Exception):
                realize([cell])
    first: dict[Node, Cell] = {}
    for cell in live():
        if isinstance(cell, Tensor) and cell._requires_grad:
            first[cell.node] = cell  # the one that learns keeps the leaf
    for cell in live():
        node = cell.node
        if node.op is ops.BUFFER and first.setdefault(node, cell) is not cell and settled(cell):
            cell.hold(memory.leaf(node.dtype, node.shape, node.arg[2], memory[node].copy()))
            if carries_gradient([node]):
                remember(cell.node, node, memory.clock)


@dataclass(eq=False)
class _Watched:
    """A tensor as it was before the trace. argument: its number, if it stands for an argument;
    gradient: the stand-in that its `grad` was, whose leaf is gradient_leaf."""

    tensor: Tensor
    leaf: Node
    learns: bool
    gradient: Tensor | None = None
    gradient_leaf: Node | None = None
    argument: int | None = None


class _Before:
    """What every tensor holds. While the trace lasts, each gradient is a stand-in."""

    def __init__(self) -> None:
        self.tensors = [cell for cell in live() if isinstance(cell, Tensor)]
        self.states = [
            (t.node, t.target, t.bindings, t._grad, t._requires_grad) for t in self.tensors
        ]
        self.deferred = set(memory.deferred)
        self.watched: dict[int, _Watched] = {}
        for tensor in self.tensors:
            watched = _Watched(tensor, tensor.node, tensor._requires_grad)
            if tensor._grad is not None:
                watched.gradient = tensor._grad = stand_in(tensor._grad)
                watched.gradient_leaf = watched.gradient.node
            self.watched[id(tensor)] = watched

    def put_back_new(self) -> None:
        """Tensors that were made during a trace that failed and had a value in memory get it
        back."""
        for cell in live():
            if isinstance(cell, Tensor) and id(cell) not in self.watched:
                leaf = cell.target or cell.node
                if leaf is not cell.node and leaf.arg[0] in memory.buffers:
                    _put_back(cell, leaf, cell._requires_grad)

    def restore(self) -> None:
        """Put everything back."""
        for tensor, state in zip(self.tensors, self.states):
            node, target, bindings, gradient, learns = state
            if tensor.node is not node or tensor._requires_grad is not learns:
                _put_back(tensor, node, learns)
            tensor.target, tensor.bindings, tensor._grad = target, bindings, gradient


def _put_back(tensor: Tensor, leaf: Node, learns: bool) -> None:
    """The tensor holds `leaf`, as it did before."""
    if tensor._requires_grad:
        untrack(tensor.node)
    tensor.hold(leaf)
    tensor._requires_grad = learns
    if learns:
        track(tensor, leaf)


def stand_in(tensor: Tensor) -> Tensor:
    """A tensor of the same kind, whose leaf has no memory."""
    leaf = memory.leaf(tensor.dtype, tensor.node.shape, tensor.device)
    made = make(leaf, tensor.bindings)
    made.__class__ = type(tensor)
    return made


# ---- the work ------------------------------------------------------------------------------------
class _Work:
    """One trace: the stand-ins, what the function did with them, and the recipe of that."""

    def __init__(self, given: Given, guards: Guards, before: _Before, tracing: Trace) -> None:
        self.given, self.guards = given, guards
        self.before, self.tracing = before, tracing
        self.watched: list[_Watched] = []  # the stand-ins of arguments, then all other tensors
        names = [*given.float_words, *(item.name for item in guards.floats)]
        self.floats = [tracing.new_float(words) for words in names]
        self.float_values = [*given.floats, *guards.float_values()]
        self.structure = Structure(None)
        self.result: list[Any] = []
        self.roots: list[Node] = []
        self.results = 0
        self.rebound: list[tuple[Item, int]] = []
        self.reached = guards.cells
        self.changed: list[tuple[_Watched, int]] = []  # (a tensor, the root of its new value)
        self.new_gradients: list[tuple[_Watched, int]] = []
        self.cells: list[Cell] = []  # the closed-over tensors
        self.held: list[Node] = []  # the leaf of each of them
        self.numbers: dict[int, int] = {}  # id of a closed-over tensor -> its number

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments to call the function with."""
        for number, tensor in enumerate(self.given.tensors):
            made = stand_in(tensor)
            self.tracing.words[made.node] = self.given.tensor_words[number]
            if flows(tensor):
                track(made, made.node)
            made._requires_grad = tensor._requires_grad
            own = self.before.watched[id(tensor)]
            made._grad = own.gradient
            self.watched.append(
                _Watched(made, made.node, own.learns, own.gradient, own.gradient_leaf, number)
            )
        stand_ins = [watched.tensor for watched in self.watched]
        numbers = [make(node, NO_BINDINGS) for node in self.floats]
        sources: dict[str, Sequence[Tensor]] = {"tensor": stand_ins, "float": numbers}
        leaves = [
            which if kind == "fixed" else sources[kind][which] for kind, which in self.given.places
        ]
        args, named = unflatten(self.given.structure, leaves)
        return args, named

    # ---- what it did -----------------------------------------------------------------------------
    def look(self, result: Any, guards: Guards) -> None:
        """Find the results and the effects. JitError for what cannot be captured."""
        leaves, self.structure = flatten(result)
        own: dict[int, int] = {}
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                own.setdefault(id(leaf), len(own))
                if own[id(leaf)] == len(self.roots):
                    self.roots.append(leaf.node)
                self.result.append(Result(own[id(leaf)]))
            elif isinstance(leaf, PLAIN):
                self.result.append(leaf)
            else:
                raise JitError(
                    f"{self.tracing.name} returns a {type(leaf).__name__}: a captured function "
                    "returns tensors, numbers, text or None, in tuples, lists, dicts and "
                    "dataclasses"
                )
        for item, new in guards.rebound():
            if not isinstance(new, Tensor) or id(new) in self.before.watched:
                raise JitError(
                    f"{self.tracing.name} puts a tensor that was there before into {item.name}: "
                    "do that outside of the captured function, or put in a copy: x.clone()"
                )
            if item.write is None:
                continue
            if id(new) not in own:
                own[id(new)] = len(self.roots)
                self.roots.append(new.node)
            self.rebound.append((item, own[id(new)]))
        self.results = len(own)
        arguments = {id(watched.tensor) for watched in self.watched}
        self.watched += self.before.watched.values()
        self.watched += self._made_inside({*own, *arguments, *self.before.watched})
        for watched in self.watched:
            self._compare(watched)

    def _made_inside(self, besides: set[int]) -> list[_Watched]:
        """Tensors that were made inside, are held outside now, and had a value in memory before
        something was put into them: the state of an optimizer at its first step."""
        known = {id(watched.gradient) for watched in self.watched if watched.gradient is not None}
        found = []
        for cell in live():
            if id(cell) in besides or id(cell) in known or not isinstance(cell, Tensor):
                continue
            leaf = cell.target or cell.node
            if leaf.op is ops.BUFFER and leaf.arg[0] in memory.buffers:
                gradient = cell._grad
                inner = None if gradient is None else gradient.node
                found.append(_Watched(cell, leaf, cell._requires_grad, gradient, inner))
        return found

    def _compare(self, watched: _Watched) -> None:
        """Note what was put into a tensor, or its gradient."""
        tensor = watched.tensor
        if tensor._requires_grad is not watched.learns:
            raise JitError(
                f"{self.tracing.name} changes requires_grad of a tensor: do that outside of the "
                "captured function"
            )
        if tensor.node is not watched.leaf:
            self.changed.append((watched, len(self.roots)))
            self.roots.append(tensor.node)
        now = tensor._grad
        if now is watched.gradient and (now is None or now.node is watched.gradient_leaf):
            return
        if watched.argument is not None and not watched.learns:
            raise JitError(
                f"backward() in {self.tracing.name} reaches {self.tracing.words[watched.leaf]}, "
                "which was itself computed from tensors that require a gradient: compute it inside "
                "of the function, or pass x.detach()"
            )
        self.new_gradients.append((watched, -1 if now is None else len(self.roots)))
        if now is not None:
            self.roots.append(now.node)

    # ---- the recipe ------------------------------------------------------------------------------
    def recipe(self) -> Recipe:
        """The effects and results as graphs over leaves in memory."""
        whole = resolved(self.roots)
        roots = inline(whole)
        leaves = leaves_below(roots)
        device = self._device(roots, leaves)
        carrying = _carrying(whole, {w.leaf for w in self.watched if w.learns})
        arguments = [w.leaf for w in self.watched if w.argument is not None]
        holders = {w.leaf: w for w in self.watched if w.argument is None}
        gradients = {w.gradient_leaf: w for w in reversed(self.watched) if w.gradient_leaf}
        kept = {}  # (the root of a new value that does not need a leaf of its own)
        for watched, root in self.changed:
            kind = roots[root].dtype, roots[root].shape
            kept[root] = kind == (watched.leaf.dtype, watched.leaf.shape) and root not in carrying
        self.changed.sort(key=lambda change: not kept[change[1]])
        effects = [
            Effect(
                root,
                self._owner(watched),
                kept[root] and _overwrites(watched.tensor) is watched.leaf,
                not kept[root],
            )
            for watched, root in self.changed
        ]
        for leaf in leaves:
            if leaf in holders:
                self._owner(holders[leaf])
        for cell in self.reached:  # its shape and dtype count, although its value may not
            if id(cell) in self.before.watched and settled(cell):
                self._owner(self.before.watched[id(cell)])
        new_gradients = [
            Gradient(root, self._owner(watched), watched.gradient is None)
            for watched, root in self.new_gradients
        ]
        read = {self._owner(gradients[leaf]): leaf for leaf in leaves if leaf in gradients}
        return Recipe(
            device=device,
            roots=roots,
            whole=whole,
            arguments=arguments,
            cells=self.cells,
            leaves=self.held,
            gradients=read,
            floats=self.floats,
            keys=self.tracing.keys,
            results=list(range(self.results)),
            effects=effects,
            new_gradients=new_gradients,
            donated=self.given.donated,
            carrying=frozenset(r for r in carrying if r < self.results)
            | {e.root for e in effects if e.new_leaf and e.root in carrying},
            moving=self._moving(),
        )

    def _moving(self) -> frozenset[int]:
        """The numbers of the closed-over tensors in whose place every call puts another one."""
        places = (self.guards.known[item.position] for item, _ in self.rebound)
        numbers = (self.numbers.get(id(tensor)) for tensor in places)
        return frozenset(len(self.given.tensors) + n for n in numbers if n is not None)

    def _owner(self, watched: _Watched) -> int:
        """The number of a tensor among the arguments and the closed-over ones."""
        if watched.argument is not None:
            return watched.argument
        key = id(watched.tensor)
        if key not in self.numbers:
            self.numbers[key] = len(self.cells)
            self.cells.append(watched.tensor)
            self.held.append(watched.leaf)
        return len(self.given.tensors) + self.numbers[key]

    def _device(self, roots: Sequence[Node], leaves: Sequence[Node]) -> str:
        places = sorted({str(leaf.arg[2]) for leaf in leaves})
        copies = any(node.op is ops.COPY for node in toposort(roots))
        if len(places) > 1 or copies:
            raise JitError(
                f"{self.tracing.name} works on several devices ({', '.join(places)}), and a "
                "captured function is a program for one: copy its inputs before, or its results "
                "afterwards"
            )
        return places[0] if places else devices.canonical(None)

    # ---- afterwards ------------------------------------------------------------------------------
    def rebase(self, keys: Sequence[int]) -> None:
        """Tensors that were made inside and are kept outside are ordinary pending values of this
        call: put the call's own leaves and numbers into their graphs."""
        actual: dict[Node, Node] = {}
        for watched in self.watched:
            if watched.argument is not None:
                actual[watched.leaf] = self.given.tensors[watched.argument].node
            elif watched.gradient_leaf is not None and watched.tensor._grad is not None:
                actual[watched.gradient_leaf] = watched.tensor._grad.node
            elif (
                id(watched.tensor) not in self.before.watched
                and watched.tensor.node is not watched.leaf
            ):
                _put_back(watched.tensor, watched.leaf, watched.learns)
        for node, number in zip(self.floats, self.float_values, strict=True):
            actual[node] = const(number, float64)
        for node, key in zip(self.tracing.keys, keys, strict=True):
            actual[node] = const(key, uint64)
        for cell in live():
            if id(cell) not in self.before.watched and not settled(cell):
                cell.hold(*substitute([cell.node], actual))
        for slot, _ in memory.deferred_leaves():
            if slot not in self.before.deferred:
                value, _ = memory.deferred[slot]
                memory.deferred[slot] = substitute([value], actual)[0], None


# ---- graphs --------------------------------------------------------------------------------------
def resolved(roots: Sequence[Node]) -> list[Node]:
    """The graphs with deferred leaves replaced by what they stand for."""
    done: dict[Node, Node] = {}
    stack = list(roots)
    while stack:
        node = stack[-1]
        below = node.src
        if node.op is ops.BUFFER and memory.is_deferred(node):
            below = (memory.deferred[node.arg[0]][0],)
        missing = [source for source in below if source not in done]
        if missing and node not in done:
            stack += missing
            continue
        stack.pop()
        if node not in done:
            new = tuple([done[source] for source in below])
            done[node] = new[0] if not node.src and new else node.with_src(new)
    return [done[root] for root in roots]


def leaves_below(roots: Sequence[Node]) -> list[Node]:
    """The leaves in memory that the roots read. RuntimeError if they read what was left over from
    another function, whose values are gone."""
    order = toposort(roots)
    for node in order:
        if node.op is ops.PLACEHOLDER:
            raise inside.refusal(node)
    return [node for node in order if node.op is ops.BUFFER]


def _carrying(roots: Sequence[Node], learning: set[Node]) -> set[int]:
    """The roots through which a gradient flows back to a leaf that wants one (or, coarsely, may).
    learning: the leaves of tensors that require a gradient."""
    flowing: set[Node] = set()
    for node in toposort(roots):
        if node.op is ops.BUFFER:
            if node in learning or carries_gradient([node]):
                flowing.add(node)
        elif node.op is not ops.STOP and not flowing.isdisjoint(node.src):
            flowing.add(node)
    return {n for n, root in enumerate(roots) if root in flowing}


def _overwrites(tensor: Tensor) -> Node | None:
    """The leaf that a tensor held before something was put into it."""
    node: Node | None = tensor.node
    if node is None or node.op is not ops.BUFFER or not memory.is_deferred(node):
        return tensor.target
    while node is not None and memory.is_deferred(node):
        node = memory.deferred[node.arg[0]][1]
    return node
