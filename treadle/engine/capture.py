"""A captured function: one Program, where its inputs come from and where its results go.

`Captured` is made of what a trace found (`recipe.py`) and replayed by `run`: it fills the slots
that have changed, makes one native call, and hands out the results. What stays the same from call
to call is not looked at again: the addresses of closed-over tensors are in their slots already, and
one comparison of lists, in C, says whether they still hold.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from treadle import config
from treadle.engine import device as devices
from treadle.engine import failure
from treadle.engine.callgraph import CallGraph, GraphOfCalls, Origin
from treadle.engine.cell import NO_BINDINGS, Cell, bind, dependants, live
from treadle.engine.constant import Kept, divide, fixed_sizes
from treadle.engine.gradients import Gradients, Placed
from treadle.engine.history import carries_gradient, forget, remember, track
from treadle.engine.jobs import settled
from treadle.engine.normal import Normal, normalise
from treadle.engine.program import Native, Step, nbytes
from treadle.engine.programs import find
from treadle.engine.realize import realize
from treadle.engine.recipe import Call, Recipe, Stale
from treadle.engine.storage import ALIGNMENT, Buffer, memory
from treadle.engine.survey import ALONE, places, references
from treadle.engine.trace import JitError
from treadle.ir import index, ops
from treadle.ir.node import Node, toposort

KEPT_BLOCK = 1 << 16  # bytes

_DOUBLE, _LONG = struct.Struct("d"), struct.Struct("q")

Make = Callable[[Node, dict[str, int]], Any]  # the Tensor of a leaf and its bindings


class Captured:
    """A recipe as a Program, ready to be replayed. make: makes Tensors; lines: the user's lines of
    indexing operations in the recipe."""

    def __init__(self, recipe: Recipe, make: Make, lines: Mapping[Node, failure.Place]) -> None:
        self.make = make
        self.device = recipe.device
        normal = normalise(recipe.roots)
        self.program = find(recipe.device, normal, _assigns(recipe, normal))
        self.schedule = self.program.schedule
        self.runner = devices.runner(recipe.device)
        normal_slots = [self._slot("buffer", n) for n in range(len(normal.leaves))]
        slot_of = dict(zip(normal.leaves, normal_slots, strict=True))
        steps = self._divide(recipe, normal, slot_of)
        self.native = Native(steps, self.program.slots, self.program.builder)
        self.slots = memoryview(self.native.records.slots)
        self.flag = memoryview(self.native.records.flag)
        for slot, value in self.program.slots.constants.items():
            self.slots[slot] = value
        self.slots[0] = self.native.records.flag.ctypes.data
        pairs = zip(toposort(normal.roots), toposort(recipe.roots), strict=True)
        self.lines = {new: lines[old] for new, old in pairs if old in lines}
        self.arguments = len(recipe.arguments)
        self.cells: list[Any] = list(recipe.cells)
        self.kinds = [_kind(*pair) for pair in zip(recipe.cells, recipe.leaves, strict=True)]
        self.places: list[Any] = []  # what `cells` held when they were looked at last
        self.moves = -1  # the memory's count then
        self._number_inputs(recipe, normal, slot_of)
        self._number_outputs(recipe)
        self._number_overwritten(recipe)
        self._number_temporaries()

    # ---- building --------------------------------------------------------------------------------
    def _slot(self, *what: Any) -> int:
        """The slot of something in the program; 0 if the program does not use it."""
        return self.program.slots.known.get(what, 0)

    def _divide(
        self, recipe: Recipe, normal: Normal, slot_of: Mapping[Node, int]
    ) -> tuple[Step, ...]:
        """The steps of the program, with what is the same at every call in front. slot_of: the slot
        of each leaf, 0 if the program does not read it."""
        outside = {*recipe.arguments, *recipe.leaves, *recipe.gradients.values()}
        made = {leaf for leaf in normal.leaves if leaf not in outside}
        given = {*recipe.floats, *recipe.keys}
        same = {slot_of.get(leaf, 0) for leaf in (*recipe.unchanging(), *made)} - {0}
        same |= set(self.program.slots.constants)
        same |= {
            self._slot("scalar", n) for n, node in enumerate(normal.scalars) if node not in given
        }
        sizes = fixed_sizes(self.program)
        division = divide(self.program.steps, same, set(sizes))
        self.kept: Kept | None = None
        if division.kept:
            self.kept = Kept(
                sum(len(phase.launches) for phase in division.constant),
                [(slot, sizes[slot]) for slot in sorted(division.kept)],
                [
                    n
                    for n, leaf in enumerate(recipe.leaves)
                    if slot_of.get(leaf) in division.sources
                ],
                [leaf.arg[0] for leaf in made if slot_of[leaf] in division.sources],
            )
        return (*division.constant, *division.rest)

    def _number_inputs(self, recipe: Recipe, normal: Normal, slot_of: Mapping[Node, int]) -> None:
        """Find the slot of every input, and fill those that are the same at every call."""
        self.argument_slots = [
            (n, slot_of[leaf]) for n, leaf in enumerate(recipe.arguments) if slot_of.get(leaf)
        ]
        self.cell_slots = [slot_of.get(leaf, 0) for leaf in recipe.leaves]
        self.gradient_slots = {
            owner: slot_of[leaf] for owner, leaf in recipe.gradients.items() if slot_of.get(leaf)
        }
        origins: dict[Node, Origin] = {
            leaf: ("cell", n) for n, leaf in enumerate((*recipe.arguments, *recipe.leaves))
        }
        origins |= {leaf: ("gradient", owner) for owner, leaf in recipe.gradients.items()}
        origins |= {number: ("float", n) for n, number in enumerate(recipe.floats)}
        origins |= {number: ("key", n) for n, number in enumerate(recipe.keys)}
        self.graph = GraphOfCalls(normal, origins)
        # derivatives see a function that has its own rule as a whole
        calls = recipe.whole != recipe.roots
        self.whole = GraphOfCalls(normalise(recipe.whole), origins) if calls else self.graph
        for kind, leaf in self.graph.leaves:
            if kind == "constant":  # made during the trace
                self.slots[slot_of[leaf]] = memory[leaf].address
        self.float_slots: list[tuple[int, int]] = []
        self.key_slots: list[tuple[int, int]] = []
        for number, (kind, which) in enumerate(self.graph.numbers):
            slot = self._slot("scalar", number)
            if slot and kind == "constant":
                self.slots[slot] = _signed(which.arg)
            elif slot:
                (self.float_slots if kind == "float" else self.key_slots).append((which, slot))

    def _number_outputs(self, recipe: Recipe) -> None:
        """Find the memory that each root goes to: that of an input, in place, or its own. A second
        root in the same memory gets a copy of it."""
        outputs, in_place = self.schedule.outputs, self.schedule.in_place
        self.results = recipe.results
        self.kinds_out = [(root.dtype, root.shape) for root in recipe.roots]
        self.infos = [self.schedule.buffers[number] for number in outputs]
        self.symbolic = bool(self.program.variables or self.program.sizes or self.native.sizes)
        self.symbolic |= any(type(n) is not int for info in self.infos for n in info.shape)
        self.bytes = [0 if self.symbolic else nbytes(info, {}) for info in self.infos]
        gradients = {g.root: g for g in recipe.new_gradients if g.root >= 0}
        first: dict[int, int] = {}  # the number of a buffer -> the first root in it
        self.copies: list[tuple[int, int]] = []  # (root, the root that it equals)
        self.own: list[tuple[int, int]] = []  # (root with memory of its own, its slot)
        for root in sorted(range(len(outputs)), key=lambda root: root not in in_place):
            number = outputs[root]
            if first.setdefault(number, root) != root:
                self.copies.append((root, first[number]))
            elif root not in in_place and root not in gradients:
                self.own.append((root, self._slot("buffer", number)))
        placed = [
            Placed(
                root,
                gradient.owner,
                gradient.is_first,
                root in in_place,
                gradient.owner in self.gradient_slots,
                self._slot("buffer", outputs[root]) if first[outputs[root]] == root else 0,
            )
            for root, gradient in gradients.items()
        ]
        written = {gradient.owner for gradient in placed if gradient.in_place}
        reads = [each for each in self.gradient_slots.items() if each[0] not in written]
        self.gradients = Gradients(placed, reads, self.slots, self._tensor)
        self.has_gradients = bool(placed or reads)
        self.cleared = [g.owner for g in recipe.new_gradients if g.root < 0]

    def _number_overwritten(self, recipe: Recipe) -> None:
        """Find the leaves whose value changes: whoever else reads them has to do it before."""
        kept = [effect for effect in recipe.effects if not effect.new_leaf]
        self.owner_of = {effect.root: effect.owner for effect in recipe.effects}
        self.owner_of |= dict(_donations(recipe))
        self.swapped = [effect for effect in kept if effect.root not in self.schedule.in_place]
        self.replaced = [effect for effect in recipe.effects if effect.new_leaf]
        owners = {effect.owner for effect in kept}
        # (`Recipe.cells` begins with those that are overwritten)
        self.alone = [ALONE] * sum(owner >= self.arguments for owner in owners)
        self.overwritten_slots: frozenset[int] = frozenset()
        self.donated = recipe.donated
        overwritten = {owner for owner in owners if owner < self.arguments}
        self.overwritten_arguments = sorted(overwritten.union(recipe.donated))
        touched = {e.owner for e in recipe.effects} | {g.owner for g in recipe.new_gradients}
        self.changed = {id(self.cells[o - self.arguments]) for o in touched if o >= self.arguments}
        gone = {recipe.leaf_of(owner) for owner in (*owners, *recipe.donated)}
        self.carrying = {
            root: not gone.isdisjoint(toposort(recipe.roots[root])) for root in recipe.carrying
        }  # root -> whether what it was computed from is overwritten

    def _number_temporaries(self) -> None:
        """One block of memory holds the arena and every scratch buffer of known size."""
        size = -(-self.schedule.arena // ALIGNMENT) * ALIGNMENT
        kept = {slot for slot, _ in self.kept.sizes} if self.kept else set()
        placed = zip(self.program.temporary_slots, self.program.temporary_offsets, strict=True)
        slots, offsets = [], []
        for slot, offset in placed:
            if slot not in kept:
                slots.append(slot)
                offsets.append(offset)
        self.scratch: list[tuple[int, Node]] = []
        for slot, wanted in self.program.scratch:
            if slot in kept:
                continue
            if isinstance(wanted, int):
                slots.append(slot)
                offsets.append(size)
                size += -(-wanted // ALIGNMENT) * ALIGNMENT
            else:
                self.scratch.append((slot, wanted))
        self.block_bytes = size
        self.needs_memory = bool(size or self.scratch)
        self.block_slots = np.array(slots, np.int64)
        self.block_offsets = np.array(offsets, np.int64)
        self.block_address = -1
        self.kept_block: Buffer | None = None  # a small one is not given back between calls

    # ---- running ---------------------------------------------------------------------------------
    def run(
        self, arguments: Sequence[Any], floats: Sequence[float], keys: Sequence[int]
    ) -> list[Any]:
        """Replay. Returns the tensors that the function returns. The lock is held.

        arguments: the tensor arguments, floats: the float arguments, keys: a random key for each
        draw. Stale if a closed-over tensor has become another kind of tensor.
        """
        buffers, slots = memory.buffers, self.slots
        for cell in arguments:
            node = cell.node
            if node.op is not ops.BUFFER or cell.target or node.arg[0] not in buffers:
                realize([cell])
        if self.cells:
            found, counts = places(self.cells, len(self.alone))
            if found != self.places or memory.moves != self.moves:
                self._look_again()
                counts = places(self.cells, len(self.alone))[1]
            if self.changed or self.overwritten_arguments:
                self._secure(arguments, counts)
        elif self.overwritten_arguments:
            self._secure(arguments, [])
        for position, slot in self.argument_slots:
            slots[slot] = memory[arguments[position].node].address
        variables = self._bind(arguments) if self.symbolic else NO_BINDINGS
        call = Call([*arguments, *self.cells], floats, keys, variables)
        held: dict[int, Buffer] = {}
        for root, slot in self.own:
            size = nbytes(self.infos[root], variables) if self.symbolic else self.bytes[root]
            held[root] = buffer = Buffer(size)
            if slot:
                slots[slot] = buffer.address
        hand_out_gradients = self.has_gradients and self.gradients.place(call.cells, variables)
        block = self._place_temporaries(variables) if self.needs_memory else None
        for position, slot in self.float_slots:
            slots[slot] = _LONG.unpack(_DOUBLE.pack(floats[position]))[0]
        for position, slot in self.key_slots:
            slots[slot] = _signed(keys[position])
        self._launch(call)
        del block  # not before: from here on others may write to this memory
        if self.copies:
            self._copy(call, held)
        if hand_out_gradients:
            self.gradients.hand_out(call.cells)
        return self._hand_out(call, held)

    def _launch(self, call: Call) -> None:
        """The native call."""
        records, flag, kept = self.native.records, self.flag, self.kept
        if kept is not None and kept.clock != memory.clock:
            kept.prepare(records, self.slots, self.places)
        flag[0] = 0
        try:
            if config.DEBUG.value:
                self.program.run_timed(self.runner, records, call.variables)
            else:
                self.runner.run(records)
        except BaseException:
            memory.disturb()
            if not records.completed:
                self.gradients.drop(call.cells)
            raise
        if flag[0]:
            memory.disturb()
            self.gradients.drop(call.cells)
            raise self._out_of_range(flag[0], call)
        if kept is not None and kept.clock < 0:
            kept.made(records)

    # ---- closed-over tensors ---------------------------------------------------------------------
    def _look_again(self) -> None:
        """Find the memory of the closed-over tensors; compute those that are pending."""
        pending = [cell for cell in self.cells if not settled(cell)]
        if pending:
            realize(pending)
        for cell, kind, slot in zip(self.cells, self.kinds, self.cell_slots, strict=True):
            now = _kind(cell, cell.node)
            if now != kind:
                raise Stale(f"a closed-over tensor was {_described(kind)} and is {_described(now)}")
            if slot:
                self.slots[slot] = memory[cell.node].address
        self.places = places(self.cells, 0)[0]
        self.moves = memory.moves
        if self.kept is not None:
            self.kept.clock = -1
        self.overwritten_slots = frozenset(place[0] for place in self.places[: len(self.alone)])

    def replace(self, new: Mapping[Any, Any]) -> None:
        """Closed-over tensors have been replaced by others. Stale if one of these is among the
        closed-over ones already."""
        known = set(map(id, self.cells))
        if any(id(cell) in known for cell in new.values()):
            raise Stale("a closed-over tensor now stands in two places")
        self.changed = {id(new.get(cell, cell)) for cell in self.cells if id(cell) in self.changed}
        self.cells = [new.get(cell, cell) for cell in self.cells]
        self.moves = -1

    def _secure(self, arguments: Sequence[Any], counts: list[int]) -> None:
        """Nobody but this program reads what it is about to overwrite: other readers do it now.
        counts: of references to the closed-over leaves that it overwrites."""
        if not self.changed.isdisjoint(map(id, arguments)):
            raise JitError(
                "an argument is a tensor that the function also changes through a variable or an "
                "attribute: pass x.clone(), or use it in one of the two ways only"
            )
        more = [arguments[position] for position in self.overwritten_arguments]
        if counts != self.alone or (more and references(more) != [ALONE] * len(more)):
            self._release([*self.cells[: len(self.alone)], *more])
            if memory.moves != self.moves:
                self._look_again()

    def _release(self, owners: Sequence[Cell]) -> None:
        """Compute what others have pending that reads the leaves of these cells."""
        leaves = [cell.node for cell in owners]
        besides = set(map(id, owners))
        others = {cell: cell.node for cell in live() if id(cell) not in besides}
        reading = dependants(others, leaves)
        for cell in reading:
            node = cell.node
            if node in leaves:  # it shares the leaf: its value is the one before this call
                cell.node = memory.leaf(node.dtype, node.shape, node.arg[2], memory[node].copy())
                if carries_gradient([node]):
                    forget(cell.node)
        deferred = {leaf: memory.deferred[slot][0] for slot, leaf in memory.deferred_leaves()}
        realize([*reading, *[Cell(leaf) for leaf in dependants(deferred, leaves)]])

    # ---- memory ----------------------------------------------------------------------------------
    def _bind(self, arguments: Sequence[Any]) -> dict[str, int]:
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
        """Memory for what is needed during the call only; its addresses are in the slots."""
        held = []
        if self.block_bytes and self.kept_block is None:
            block = Buffer(self.block_bytes)
            held.append(block)
            if self.block_bytes <= KEPT_BLOCK:
                self.kept_block = block
                self.needs_memory = bool(self.scratch)
            if block.address != self.block_address:
                self.block_address = block.address
                self.native.records.slots[self.block_slots] = self.block_offsets + block.address
        for slot, size in self.scratch:
            held.append(Buffer(index.evaluate(size, variables)))
            self.slots[slot] = held[-1].address
        return held

    def _leaf(self, root: int, buffer: Buffer) -> Node:
        dtype, shape = self.kinds_out[root]
        return memory.leaf(dtype, shape, self.device, buffer)

    def _tensor(self, root: int, buffer: Buffer | None, variables: dict[str, int]) -> Any:
        """The tensor of a root, in given memory or in its own."""
        if buffer is None:
            buffer = Buffer(nbytes(self.infos[root], variables))
        return self.make(self._leaf(root, buffer), variables)

    # ---- results ---------------------------------------------------------------------------------
    def _hand_out(self, call: Call, held: dict[int, Buffer]) -> list[Any]:
        """Put values into cells; the results as tensors."""
        results = []
        leaves = {}
        for root in self.results:
            buffer = held.get(root)
            if buffer is None:  # in the memory of a donated argument
                buffer = memory[call.cells[self.owner_of[root]].node]
            dtype, shape = self.kinds_out[root]
            leaf = memory.leaf(dtype, shape, self.device, buffer)
            results.append(self.make(leaf, call.variables))
            if self.carrying and root in self.carrying:
                leaves[root] = leaf
        for effect in self.replaced:
            leaves[effect.root] = leaf = self._leaf(effect.root, held[effect.root])
            cell = call.cells[effect.owner]
            cell.node, cell.bindings = leaf, call.variables
            if cell._requires_grad:
                track(cell, leaf)
        if leaves:
            self._remember(leaves, call)
        if self.swapped:
            self._swap(call, held)
        if memory.history or not memory.watched.isdisjoint(self.overwritten_slots):
            memory.overwritten_slots(self.overwritten_slots)
        for owner in self.cleared:
            call.cells[owner].grad = None
        for position in self.overwritten_arguments:
            memory.overwritten(call.cells[position].node)
        for position in self.donated:
            node = call.cells[position].node
            call.cells[position].node = memory.leaf(node.dtype, node.shape, node.arg[2])
        return results

    def _copy(self, call: Call, held: dict[int, Buffer]) -> None:
        """Roots that are equal to another one: each gets memory of its own."""
        made = {g.root: mine for g, mine in zip(self.gradients.new, self.gradients.made)}
        for root, equal in self.copies:
            if equal in held:
                source = held[equal]
            elif equal in made:
                source = memory[made[equal].node]
            else:
                source = memory[call.cells[self.owner_of[equal]].node]
            if root in made:
                memory[made[root].node].assign(source)
            else:
                held[root] = source.copy()

    def _swap(self, call: Call, held: dict[int, Buffer]) -> None:
        """Cells that keep their leaf and get other memory."""
        for effect in self.swapped:
            memory.fill(call.cells[effect.owner].node, held[effect.root])
            position = effect.owner - self.arguments
            if position >= 0 and self.cell_slots[position]:
                self.slots[self.cell_slots[position]] = held[effect.root].address
        # all that has moved since the slots were filled is what was swapped here
        self.moves = self.gradients.moves = memory.moves

    def _remember(self, leaves: dict[int, Node], call: Call) -> None:
        """Let gradients flow back through results."""
        graph: CallGraph | None = None
        for root, leaf in leaves.items():
            if self.carrying.get(root, False):
                forget(leaf)
            elif root in self.carrying:
                graph = graph or CallGraph(self.whole, call)
                remember(leaf, partial(graph.root, root), memory.clock)

    def _out_of_range(self, flag: int, call: Call) -> IndexError:
        """The error for a check that failed; see `realize.out_of_range`."""
        failed = self.program.checks[min(flag, len(self.program.checks)) - 1]
        graph = CallGraph(self.graph, call)
        values = graph.roots()
        for node, line in self.lines.items():
            own = graph.node(node)
            failure.places[own] = failure.uses[own.src[1]] = line

        def compute(node: Node) -> np.ndarray:
            cell = Cell(node, call.variables)
            realize([cell])
            return memory[cell.node].array(node.dtype, (-1,))

        found = failure.find(failed, Normal(self.graph.roots, (), ()), values)
        return IndexError(failure.describe(failed, found, call.variables, compute))


# ---- small parts ---------------------------------------------------------------------------------
def _assigns(recipe: Recipe, normal: Normal) -> dict[int, int]:
    """{root: leaf that it may overwrite}, as the schedule takes them."""
    wishes = [(e.root, recipe.leaf_of(e.owner)) for e in recipe.effects if e.in_place]
    for gradient in recipe.new_gradients:
        if gradient.root >= 0 and gradient.owner in recipe.gradients:
            wishes.append((gradient.root, recipe.gradients[gradient.owner]))
    wishes += [(root, recipe.arguments[position]) for root, position in _donations(recipe)]
    numbers = {leaf: n for n, leaf in enumerate(normal.leaves)}
    assigns: dict[int, int] = {}
    taken: set[int] = set()
    for root, leaf in wishes:
        number = numbers.get(leaf, -1)
        if number >= 0 and number not in taken and root not in assigns:
            assigns[root] = number
            taken.add(number)
    return assigns


def _donations(recipe: Recipe) -> list[tuple[int, int]]:
    """(root of a result, the donated argument whose memory it may take over)."""
    free = list(recipe.donated)
    found = []
    for root in recipe.results:
        node = recipe.roots[root]
        for position in free:
            leaf = recipe.arguments[position]
            if leaf.dtype is node.dtype and leaf.shape == node.shape:
                free.remove(position)
                found.append((root, position))
                break
    return found


def _kind(cell: Any, leaf: Node) -> tuple[Any, ...]:
    """What a program depends on in a closed-over tensor, beside its numbers."""
    return (leaf.dtype, *leaf.arg[1:], cell._requires_grad)


def _described(kind: tuple[Any, ...]) -> str:
    dtype, shape, device, learns = kind
    return f"{dtype} {shape} on {device}" + (" with requires_grad" if learns else "")


def _signed(bits: int) -> int:
    """The bits of a slot as the signed number that it is stored as."""
    return bits - (1 << 64) if bits >= 1 << 63 else bits
