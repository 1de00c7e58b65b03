"""A captured function: one Program, where its inputs come from and where its results go.

`Recipe` is what a trace found, as graphs. `Captured` is made of it and is replayed by `run`: it fills
the slots that have changed, makes one native call, and hands out the results. What stays the same
from call to call is not looked at again: the addresses of closed-over tensors are in their slots
already, and one comparison of lists, in C, says whether they still hold.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import attrgetter, is_
from sys import getrefcount
from typing import Any

import numpy as np

from treadle import config
from treadle.engine import device as devices
from treadle.engine import failure
from treadle.engine.cell import NO_BINDINGS, Cell, bind, dependants, live
from treadle.engine.history import carries_gradient, forget, remember, track
from treadle.engine.jobs import settled
from treadle.engine.normal import Normal, normalise
from treadle.engine.program import Native, nbytes
from treadle.engine.programs import find
from treadle.engine.realize import realize
from treadle.engine.storage import ALIGNMENT, Buffer, memory
from treadle.engine.trace import JitError
from treadle.graph.build import const
from treadle.ir import index, ops
from treadle.ir.dtype import float64, uint64
from treadle.ir.node import Node, toposort

_node = attrgetter("node")
_arg = attrgetter("arg")  # of a leaf: (slot, shape, device)
_grad = attrgetter("grad")
_DOUBLE, _LONG = struct.Struct("d"), struct.Struct("q")

Make = Callable[[Node, dict[str, int]], Any]  # a Tensor that holds a leaf
# tensor arguments, float arguments, random keys, the values of Variables
Call = tuple[Sequence[Cell], Sequence[float], Sequence[int], dict[str, int]]


class Stale(Exception):
    """A captured function does not fit any more; the message is the reason."""


@dataclass
class Effect:
    """A cell that the function gives a new value. root: its number; owner: the cell's, among the
    arguments and the closed-over cells; in_place: whether it may overwrite the old value; new_leaf:
    whether the cell gets a leaf of its own, because a gradient may flow through the value, or its
    shape is another."""

    root: int
    owner: int
    in_place: bool
    new_leaf: bool


@dataclass
class Gradient:
    """A cell whose `grad` the function sets. root: the number of the value, or -1 for None; is_first:
    whether there was none before. The rest is for `Captured`: whether the old gradient is
    overwritten, or read; the slot for the new one."""

    root: int
    owner: int
    is_first: bool
    in_place: bool = False
    is_read: bool = False
    slot: int = 0


@dataclass
class Recipe:
    """What a trace found.

    device: where it runs. roots: graphs of all values to compute, whose leaves are stand-ins, leaves
    of closed-over cells, and constants. arguments: the stand-in of each tensor argument. cells: the
    closed-over cells, those first that keep their leaf and get another value; leaves: what they held. gradients: stand-ins of `cell.grad`, by the number of
    the cell among arguments and cells. floats, keys: stand-ins of numbers. results: the root of each
    tensor returned. carrying: the roots through which a gradient flows back.
    """

    device: str
    roots: list[Node]
    arguments: list[Node]
    cells: list[Cell]
    leaves: list[Node]
    gradients: dict[int, Node]
    floats: list[Node]
    keys: list[Node]
    results: list[int]
    effects: list[Effect] = field(default_factory=list)
    new_gradients: list[Gradient] = field(default_factory=list)
    donated: tuple[int, ...] = ()
    carrying: frozenset[int] = frozenset()


class _Held:
    """Something with a node, to see how many references the engine itself holds."""

    arg = None

    def __init__(self, node: Any) -> None:
        self.node = node


def _survey(holders: Sequence[Any], watched: int) -> tuple[list[Any], list[int]]:
    """(the arg of the node of each, how many references there are to the first `watched` nodes)."""
    nodes = list(map(_node, holders))
    return list(map(_arg, nodes)), list(map(getrefcount, islice(nodes, watched)))


# What `_survey` says of a node that one cell holds and nobody else, and what is said of an object
# that one list holds and nobody else: more means that somebody else can see it.
ALONE = _survey([_Held(_Held(None))], 1)[1][0]
IN_LIST = list(map(getrefcount, [object()]))[0]


class Captured:
    """A recipe as a Program, ready to be replayed.

    make: makes the Tensor of a leaf and its bindings. places: the user's lines of indexing
    operations in the recipe.
    """

    def __init__(self, recipe: Recipe, make: Make, places: Mapping[Node, failure.Place]) -> None:
        self.make = make
        self.device = recipe.device
        self.normal = normalise(recipe.roots)
        self.donated_to: dict[int, int] = {}  # root -> the argument whose memory it may take over
        self.program = find(recipe.device, self.normal, self._assigns(recipe))
        self.schedule = self.program.schedule
        self.runner = devices.runner(recipe.device)
        self.native = Native(self.program.steps, self.program.slots, self.program.builder)
        self.slots = memoryview(self.native.records.slots)
        self.flag = memoryview(self.native.records.flag)
        for slot, value in self.program.slots.constants.items():
            self.slots[slot] = value
        self.lines = {
            new: places[old]
            for new, old in zip(toposort(self.normal.roots), toposort(recipe.roots), strict=True)
            if old in places
        }
        self.arguments = len(recipe.arguments)
        self.cells: list[Any] = list(recipe.cells)
        self.kinds = [_kind(cell, leaf) for cell, leaf in zip(recipe.cells, recipe.leaves)]
        self.places: list[Any] = []  # what `cells` held when they were looked at last
        self.moves = -1  # the memory's count then
        self._number_inputs(recipe)
        self._number_outputs(recipe)
        self._number_temporaries()
        self.normal = Normal(self.normal.roots, (), ())  # what is captured keeps no value alive

    # ---- building --------------------------------------------------------------------------------
    def _assigns(self, recipe: Recipe) -> dict[int, int]:
        """{root: leaf that it may overwrite}, as the schedule takes them."""
        sources = [*recipe.arguments, *recipe.leaves]
        wishes = [(e.root, sources[e.owner]) for e in recipe.effects if e.in_place]
        for gradient in recipe.new_gradients:
            if gradient.root >= 0 and gradient.owner in recipe.gradients:
                wishes.append((gradient.root, recipe.gradients[gradient.owner]))
        free = [recipe.arguments[position] for position in recipe.donated]
        for root in recipe.results:
            node = recipe.roots[root]
            fits = [leaf for leaf in free if leaf.dtype is node.dtype and leaf.shape == node.shape]
            if fits:
                free.remove(fits[0])
                wishes.append((root, fits[0]))
                self.donated_to[root] = recipe.arguments.index(fits[0])
        numbers = {leaf: n for n, leaf in enumerate(self.normal.leaves)}
        assigns: dict[int, int] = {}
        for root, leaf in wishes:
            if leaf in numbers and numbers[leaf] not in assigns.values():
                assigns.setdefault(root, numbers[leaf])
        return assigns

    def _slot(self, *what: Any) -> int:
        """The slot of something in the program; 0 if the program does not use it."""
        return self.program.slots.known.get(what, 0)

    def _number_inputs(self, recipe: Recipe) -> None:
        leaves = self.normal.leaves
        slot_of = {leaf: self._slot("buffer", n) for n, leaf in enumerate(leaves)}
        self.argument_slots = [
            (n, slot_of[leaf]) for n, leaf in enumerate(recipe.arguments) if slot_of.get(leaf)
        ]
        self.cell_slots = [slot_of.get(leaf, 0) for leaf in recipe.leaves]
        self.gradient_slots = {
            owner: slot_of[leaf] for owner, leaf in recipe.gradients.items() if slot_of.get(leaf)
        }
        origins: dict[Node, tuple[str, Any]] = {}
        origins |= {leaf: ("argument", n) for n, leaf in enumerate(recipe.arguments)}
        origins |= {leaf: ("cell", n) for n, leaf in enumerate(recipe.leaves)}
        origins |= {leaf: ("gradient", owner) for owner, leaf in recipe.gradients.items()}
        origins |= {number: ("float", n) for n, number in enumerate(recipe.floats)}
        origins |= {number: ("key", n) for n, number in enumerate(recipe.keys)}
        self.leaf_origins = [origins.get(leaf, ("constant", leaf)) for leaf in leaves]
        for kind, leaf in self.leaf_origins:
            if kind == "constant":  # made during the trace, the same at every call
                self.slots[slot_of[leaf]] = memory[leaf].address
        self.number_origins = [origins.get(n, ("constant", n)) for n in self.normal.scalars]
        self.float_slots: list[tuple[int, int]] = []
        self.key_slots: list[tuple[int, int]] = []
        for number, (kind, which) in enumerate(self.number_origins):
            slot = self._slot("scalar", number)
            if slot and kind == "constant":
                self.slots[slot] = _signed(which.arg)
            elif slot:
                (self.float_slots if kind == "float" else self.key_slots).append((which, slot))
        self.slots[0] = self.native.records.flag.ctypes.data

    def _number_outputs(self, recipe: Recipe) -> None:
        """Which memory each root goes to: that of an input, in place, or its own. A second root in
        the same memory gets a copy of it."""
        outputs, in_place = self.schedule.outputs, self.schedule.in_place
        self.results = recipe.results
        self.donated = recipe.donated
        self.kinds_out = [(root.dtype, root.shape) for root in recipe.roots]
        owners: dict[int, int] = {}  # the number of a buffer -> the first root in it
        self.copies: list[tuple[int, int]] = []  # (root, the root that it equals)
        self.owner_of = {effect.root: effect.owner for effect in recipe.effects}
        self.own: list[tuple[int, int]] = []  # (root with memory of its own, its slot)
        self.gradients = [g for g in recipe.new_gradients if g.root >= 0]
        self.cleared = [g.owner for g in recipe.new_gradients if g.root < 0]
        gradient_roots = {g.root for g in self.gradients}
        order = sorted(range(len(outputs)), key=lambda root: root not in in_place)
        for root in order:
            number = outputs[root]
            if owners.setdefault(number, root) != root:
                self.copies.append((root, owners[number]))
            elif root not in in_place and root not in gradient_roots:
                self.own.append((root, self._slot("buffer", number)))
        for gradient in self.gradients:
            gradient.in_place = gradient.root in in_place
            gradient.is_read = gradient.owner in self.gradient_slots
            if owners[outputs[gradient.root]] == gradient.root:
                gradient.slot = self._slot("buffer", outputs[gradient.root])
        written = {gradient.owner for gradient in self.gradients if gradient.in_place}
        self.gradient_reads = [
            (owner, slot) for owner, slot in self.gradient_slots.items() if owner not in written
        ]
        self.made: list[Any] = []  # what this gave to each of `gradients`
        self.entry: list[Any] = []  # what each had before that, if nothing else came in between
        self.made_counts: list[int] = []
        self.made_alone: list[int] = []
        self.made_moves = -1
        infos = [self.schedule.buffers[number] for number in outputs]
        self.symbolic = bool(self.program.variables or self.program.sizes or self.native.sizes)
        self.symbolic |= any(not isinstance(size, int) for info in infos for size in info.shape)
        self.infos = infos
        self.bytes = [0 if self.symbolic else nbytes(info, {}) for info in infos]
        self._number_overwritten(recipe)

    def _number_overwritten(self, recipe: Recipe) -> None:
        """The leaves that change: whoever else reads them has to do it before."""
        kept = [e for e in recipe.effects if not e.new_leaf]
        self.swapped = [e for e in kept if e.root not in self.schedule.in_place]
        self.replaced = [e for e in recipe.effects if e.new_leaf]
        owners = sorted({e.owner for e in kept})
        # (`Recipe.cells` begins with those that are overwritten)
        self.alone = [ALONE] * sum(owner >= self.arguments for owner in owners)
        self.overwritten_arguments = [o for o in owners if o < self.arguments]
        self.overwritten_arguments += [d for d in recipe.donated if d not in owners]
        touched = {e.owner for e in recipe.effects} | {g.owner for g in recipe.new_gradients}
        self.changed = {id(self.cells[o - self.arguments]) for o in touched if o >= self.arguments}
        sources = [*recipe.arguments, *recipe.leaves]
        gone = {sources[o] for o in (*owners, *recipe.donated)}
        self.carrying = {
            root: not gone.isdisjoint(toposort(recipe.roots[root])) for root in recipe.carrying
        }  # root -> whether what it was computed from is overwritten
        self.overwritten_slots: list[int] = []

    def _number_temporaries(self) -> None:
        """One block of memory holds the arena and every scratch buffer of known size."""
        size = -(-self.schedule.arena // ALIGNMENT) * ALIGNMENT
        slots, offsets = list(self.program.temporary_slots), list(self.program.temporary_offsets)
        self.scratch: list[tuple[int, Node]] = []
        for slot, wanted in self.program.scratch:
            if isinstance(wanted, int):
                slots.append(slot)
                offsets.append(size)
                size += -(-wanted // ALIGNMENT) * ALIGNMENT
            else:
                self.scratch.append((slot, wanted))
        self.block_bytes = size
        self.block_slots = np.array(slots, np.int64)
        self.block_offsets = np.array(offsets, np.int64)
        self.block_address = -1

    # ---- running ---------------------------------------------------------------------------------
    def run(
        self, arguments: Sequence[Cell], numbers: Sequence[float], keys: Sequence[int]
    ) -> list[Any]:
        """Replay. Returns the tensors that the function returns. The lock is held.

        arguments: the tensor arguments, numbers: the float arguments, keys: a random key for each
        draw. Stale if a closed-over tensor has become another kind of tensor.
        """
        buffers, slots = memory.buffers, self.slots
        for cell in arguments:
            node = cell.node
            if node.op is not ops.BUFFER or cell.target or node.arg[0] not in buffers:
                realize([cell])
                memory[cell.node]  # an error for a donated tensor
        places, counts = _survey(self.cells, len(self.alone))
        if places != self.places or memory.moves != self.moves:
            self._look_again()
            _, counts = _survey(self.cells, len(self.alone))
        if self.changed or self.overwritten_arguments:
            self._secure(arguments, counts)
        for position, slot in self.argument_slots:
            slots[slot] = buffers[arguments[position].node.arg[0]].address
        variables = self._bind(arguments) if self.symbolic else NO_BINDINGS
        held: dict[int, Buffer] = {}
        for root, slot in self.own:
            held[root] = buffer = self._buffer(root, variables)
            if slot:
                slots[slot] = buffer.address
        if self.gradient_reads:
            self._read_gradients(arguments)
        if self.gradients:
            self._place_gradients(arguments, variables)
        block = self._place_temporaries(variables)
        for position, slot in self.float_slots:
            slots[slot] = _LONG.unpack(_DOUBLE.pack(numbers[position]))[0]
        for position, slot in self.key_slots:
            slots[slot] = _signed(keys[position])
        call = (arguments, numbers, keys, variables)
        self._launch(call)
        del block  # not before: from here on others may write to this memory
        return self._hand_out(call, held)

    def _launch(self, call: Call) -> None:
        records, flag = self.native.records, self.flag
        flag[0] = 0
        try:
            if config.DEBUG:
                self.program.run_timed(self.runner, records, call[3])
            else:
                self.runner.run(records)
        except BaseException:
            if not records.completed:
                self._drop_gradients(call[0])
            raise
        if flag[0]:
            self._drop_gradients(call[0])
            raise self._out_of_range(flag[0], call)

    def _owner(self, owner: int, arguments: Sequence[Cell]) -> Any:
        return arguments[owner] if owner < self.arguments else self.cells[owner - self.arguments]

    # ---- closed-over tensors ---------------------------------------------------------------------
    def _look_again(self) -> None:
        """Find the memory of the closed-over tensors; compute those that are pending."""
        pending = [cell for cell in self.cells if not settled(cell)]
        if pending:
            realize(pending)
        for cell, kind, slot in zip(self.cells, self.kinds, self.cell_slots):
            leaf = cell.node
            now = _kind(cell, leaf)
            if now != kind:
                raise Stale(f"a closed-over tensor was {_described(kind)} and is {_described(now)}")
            if slot:
                self.slots[slot] = memory[leaf].address
        self.places = _survey(self.cells, 0)[0]
        self.moves = memory.moves
        self.overwritten_slots = [place[0] for place in self.places[: len(self.alone)]]

    def replace(self, new: Mapping[Cell, Cell]) -> None:
        """Closed-over tensors have been replaced by others. Stale if one of these is among the
        closed-over ones already."""
        known = set(map(id, self.cells))
        if any(id(cell) in known for cell in new.values()):
            raise Stale("a closed-over tensor now stands in two places")
        changed = {id(new[c]) if c in new else id(c) for c in self.cells if id(c) in self.changed}
        self.cells = [new.get(cell, cell) for cell in self.cells]
        self.changed = changed
        self.moves = -1

    def _secure(self, arguments: Sequence[Cell], counts: list[int]) -> None:
        """Nobody but this program reads what it is about to overwrite: other readers do it now.
        counts: of references to the closed-over leaves that it overwrites."""
        if not self.changed.isdisjoint(map(id, arguments)):
            raise JitError(
                "an argument is a tensor that the function also changes through a variable or an "
                "attribute: pass x.clone(), or use it in one of the two ways only"
            )
        more = [arguments[position] for position in self.overwritten_arguments]
        if counts != self.alone or (more and _survey(more, len(more))[1] != [ALONE] * len(more)):
            self._release([*self.cells[: len(self.alone)], *more])
            if memory.moves != self.moves:
                self._look_again()

    def _release(self, owners: Sequence[Cell]) -> None:
        leaves = [cell.node for cell in owners]
        besides = set(map(id, owners))
        others = {cell: cell.node for cell in live() if id(cell) not in besides}
        reading = dependants(others, leaves)
        for cell in reading:
            if cell.node in leaves:  # it shares the leaf: its value is the one before this call
                node = cell.node
                cell.node = memory.leaf(node.dtype, node.shape, node.arg[2], memory[node].copy())
                if carries_gradient([node]):
                    forget(cell.node)
        deferred = {leaf: memory.deferred[slot][0] for slot, leaf in memory.deferred_leaves()}
        realize([*reading, *[Cell(leaf) for leaf in dependants(deferred, leaves)]])

    # ---- memory ----------------------------------------------------------------------------------
    def _bind(self, arguments: Sequence[Cell]) -> dict[str, int]:
        """The values of the Variables in this call, written to where the program reads them."""
        variables = NO_BINDINGS
        for cell in (*arguments, *self.cells):
            variables = bind(variables, cell.bindings)
        for name, slot in self.program.variables:
            if name in variables:
                self.slots[slot] = variables[name]
        for size, slot in self.program.sizes:
            self.slots[slot] = index.evaluate(size, variables)
        self.native.set_sizes(variables)
        return variables

    def _place_temporaries(self, variables: dict[str, int]) -> list[Buffer]:
        held = []
        if self.block_bytes:
            block = Buffer(self.block_bytes)
            held.append(block)
            if block.address != self.block_address:
                self.block_address = block.address
                self.native.records.slots[self.block_slots] = self.block_offsets + block.address
        for slot, size in self.scratch:
            held.append(Buffer(index.evaluate(size, variables)))
            self.slots[slot] = held[-1].address
        return held

    # ---- gradients -------------------------------------------------------------------------------
    def _read_gradients(self, arguments: Sequence[Cell]) -> None:
        """The addresses of the gradients that the function reads and does not write over."""
        found = [self._owner(owner, arguments).grad for owner, _ in self.gradient_reads]
        realize(found)
        for gradient, (_, slot) in zip(found, self.gradient_reads):
            self.slots[slot] = memory[gradient.node].address

    def _place_gradients(self, arguments: Sequence[Cell], variables: dict[str, int]) -> None:
        """Give every new gradient memory. A tensor that this function made before is used again,
        with its memory, unless somebody else holds it."""
        owners = [self._owner(gradient.owner, arguments) for gradient in self.gradients]
        before = list(map(_grad, owners))
        made = self.made
        counts = list(map(getrefcount, made))
        if (
            made
            and memory.moves == self.made_moves
            and all(map(is_, before, self.entry))
            and counts == self.made_counts
            and _survey(made, len(made))[1] == self.made_alone
        ):
            return
        if [now is None for now in before] != [g.is_first for g in self.gradients]:
            raise Stale("a tensor has a gradient that had none, or the other way round")
        free = [
            count == IN_LIST + (entry is mine) + 2 * (now is mine) and leaf == ALONE
            for count, entry, now, mine, leaf in zip(
                counts, self.entry, before, made, _survey(made, len(made))[1]
            )
        ] or [False] * len(before)
        realize([now for now, gradient in zip(before, self.gradients) if gradient.in_place])
        new = []
        for n, (gradient, now) in enumerate(zip(self.gradients, before)):
            mine = made[n] if free[n] else None
            if gradient.in_place and (mine is None or now is not mine):
                mine = self._tensor(gradient.root, memory[now.node].copy(), variables)
            elif mine is None or gradient.is_read:
                mine = self._tensor(gradient.root, self._buffer(gradient.root, variables), variables)
            new.append(mine)
            if gradient.slot:
                self.slots[gradient.slot] = memory[mine.node].address
        self.made = new
        self.entry = [None if now is None else mine for now, mine in zip(before, new)]
        self.made_counts = [IN_LIST + 3 * (entry is not None) for entry in self.entry]
        self.made_alone = [ALONE] * len(new)
        self.made_moves = memory.moves

    def _drop_gradients(self, arguments: Sequence[Cell]) -> None:
        """The program ended half-way: what stood in the memory of gradients is lost."""
        for gradient, mine in zip(self.gradients, self.made):
            owner = self._owner(gradient.owner, arguments)
            if owner.grad is mine and not gradient.in_place:
                owner.grad = None

    def release(self) -> None:
        """Another captured function makes the gradients from now on."""
        self.made, self.entry = [], []

    # ---- results ---------------------------------------------------------------------------------
    def _buffer(self, root: int, variables: dict[str, int]) -> Buffer:
        """New memory for a root."""
        return Buffer(nbytes(self.infos[root], variables) if self.symbolic else self.bytes[root])

    def _tensor(self, root: int, buffer: Buffer, variables: dict[str, int]) -> Any:
        dtype, shape = self.kinds_out[root]
        return self.make(memory.leaf(dtype, shape, self.device, buffer), variables)

    def _hand_out(self, call: Call, held: dict[int, Buffer]) -> list[Any]:
        """Put values into cells and gradients; the results as tensors."""
        arguments, _, _, variables = call
        if self.copies:
            self._copy(arguments, held)
        for gradient, mine in zip(self.gradients, self.made):
            self._owner(gradient.owner, arguments).grad = mine
        for position in self.cleared:
            self._owner(position, arguments).grad = None
        leaves = {}
        results = []
        for root in self.results:
            dtype, shape = self.kinds_out[root]
            if root not in held:  # in the memory of a donated argument
                held[root] = memory[arguments[self.donated_to[root]].node]
            leaf = memory.leaf(dtype, shape, self.device, held[root])
            results.append(self.make(leaf, variables))
            if root in self.carrying:
                leaves[root] = leaf
        for effect in self.replaced:
            leaves[effect.root] = self._new_leaf(effect, call, held[effect.root])
        if leaves:
            self._remember(leaves, call)
        if self.swapped:
            self._swap(arguments, held)
        if self.overwritten_slots and memory.history:
            memory.overwritten_slots(self.overwritten_slots)
        for position in self.overwritten_arguments:
            memory.overwritten(arguments[position].node)
        for position in self.donated:
            node = arguments[position].node
            arguments[position].node = memory.leaf(node.dtype, node.shape, node.arg[2])
        return results

    def _copy(self, arguments: Sequence[Cell], held: dict[int, Buffer]) -> None:
        """Roots that are equal to another one: each gets memory of its own."""
        made = {g.root: mine for g, mine in zip(self.gradients, self.made)}
        for root, equal in self.copies:
            if equal in held:
                source = held[equal]
            elif equal in made:
                source = memory[made[equal].node]
            else:
                source = memory[self._owner(self.owner_of[equal], arguments).node]
            if root in made:
                memory[made[root].node].assign(source)
            else:
                held[root] = source.copy()

    def _new_leaf(self, effect: Effect, call: Call, buffer: Buffer) -> Node:
        arguments, _, _, variables = call
        dtype, shape = self.kinds_out[effect.root]
        leaf = memory.leaf(dtype, shape, self.device, buffer)
        cell = self._owner(effect.owner, arguments)
        cell.node, cell.bindings = leaf, variables
        if cell._requires_grad:
            track(cell, leaf)
        return leaf

    def _swap(self, arguments: Sequence[Cell], held: dict[int, Buffer]) -> None:
        """Cells that keep their leaf and get other memory."""
        looked = memory.moves == self.moves
        for effect in self.swapped:
            leaf = self._owner(effect.owner, arguments).node
            memory.fill(leaf, held[effect.root])
            position = effect.owner - self.arguments
            if position >= 0 and self.cell_slots[position]:
                self.slots[self.cell_slots[position]] = held[effect.root].address
        if looked:  # nobody else has moved anything
            self.moves = self.made_moves = memory.moves

    # ---- what the results were computed from ------------------------------------------------------
    def _remember(self, leaves: dict[int, Node], call: Call) -> None:
        """Let gradients flow back through results."""
        graph = None
        for root, leaf in leaves.items():
            if self.carrying.get(root, False):
                forget(leaf)
            elif root in self.carrying:
                graph = graph or _Graph(self, call)
                remember(leaf, partial(graph.root, root), memory.clock)

    def _out_of_range(self, flag: int, call: Call) -> IndexError:
        """The error for a check that failed; see `realize.out_of_range`."""
        failed = self.program.checks[min(flag, len(self.program.checks)) - 1]
        graph = _Graph(self, call)
        values = graph.roots()
        for node, line in self.lines.items():
            failure.places[graph.node(node)] = line
            failure.uses[graph.node(node).src[1]] = line
        own = failure.find(failed, self.normal, values)

        def compute(node: Node) -> np.ndarray:
            cell = Cell(node, call[3])
            realize([cell])
            return memory[cell.node].array(node.dtype, (-1,))

        return IndexError(failure.describe(failed, own, call[3], compute))


class _Graph:
    """The graph of one call, over the leaves and with the numbers that it had."""

    def __init__(self, captured: Captured, call: Call) -> None:
        arguments, numbers, keys, _ = call
        self.normal = captured.normal
        cells = captured.cells
        find_leaf: dict[str, Callable[[Any], Node]] = {
            "argument": lambda n: arguments[n].node,
            "cell": lambda n: cells[n].node,
            "gradient": lambda owner: captured._owner(owner, arguments).grad.node,
            "constant": lambda leaf: leaf,
            "float": lambda n: const(float(numbers[n]), float64),
            "key": lambda n: const(keys[n], uint64),
        }
        self.leaves = [find_leaf[kind](which) for kind, which in captured.leaf_origins]
        self.numbers = [find_leaf[kind](which) for kind, which in captured.number_origins]
        self.done: dict[Node, Node] = {}

    def node(self, node: Node) -> Node:
        """What a node of the normal form is in this call."""
        if not self.done:
            for each in toposort(self.normal.roots):
                if each.op is ops.BUFFER:
                    self.done[each] = self.leaves[each.arg[0]]
                elif each.op is ops.SCALAR:
                    self.done[each] = self.numbers[each.arg]
                else:
                    self.done[each] = each.with_src(tuple([self.done[s] for s in each.src]))
        return self.done[node]

    def root(self, number: int) -> Node:
        """The graph of a root."""
        return self.node(self.normal.roots[number])

    def roots(self) -> list[Node]:
        """The graphs of all roots."""
        return [self.node(root) for root in self.normal.roots]


def _signed(bits: int) -> int:
    """The bits of a slot as the signed number that it is stored as."""
    return bits - (1 << 64) if bits >= 1 << 63 else bits


def _kind(cell: Any, leaf: Node) -> tuple[Any, ...]:
    return (leaf.dtype, *leaf.arg[1:], cell._requires_grad)


def _described(kind: tuple[Any, ...]) -> str:
    dtype, shape, device, learns = kind
    return f"{dtype} {shape} on {device}" + (" with requires_grad" if learns else "")
