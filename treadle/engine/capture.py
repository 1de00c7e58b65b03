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

from treadle import config, host
from treadle.engine import device as devices
from treadle.engine import failure
from treadle.engine.callgraph import CallGraph, GraphOfCalls, Origin
from treadle.engine.cell import NO_BINDINGS, Cell, bind, puts
from treadle.engine.closed import Closed
from treadle.engine.constant import Kept, divide, fixed_sizes
from treadle.engine.direct import Direct
from treadle.engine.gradients import Gradients, Placed
from treadle.engine.history import forget, remember, track
from treadle.engine.normal import Normal, normalise
from treadle.engine.program import Native, Step, nbytes
from treadle.engine.programs import find
from treadle.engine.realize import realize
from treadle.engine.recipe import Call, Recipe
from treadle.engine.spare import Spare
from treadle.engine.storage import Buffer, memory
from treadle.graph.places import INDEXING, all_below, put
from treadle.ir import index
from treadle.ir.node import Node, toposort

KEPT_BLOCK = 1 << 16  # bytes

_DOUBLE, _LONG = struct.Struct("d"), struct.Struct("q")

Make = Callable[[Node, dict[str, int]], Any]  # the Tensor of a leaf and its bindings


class Captured:
    """A recipe as a Program, ready to be replayed. make: makes Tensors."""

    def __init__(self, recipe: Recipe, make: Make) -> None:
        self.make = make
        self.device = recipe.device
        normal = normalise(recipe.roots)
        made = _made(recipe, normal)
        fixed = recipe.unchanging() | made
        unchanging = frozenset(n for n, leaf in enumerate(normal.leaves) if leaf in fixed)
        self.program = find(recipe.device, normal, _assigns(recipe, normal), unchanging)
        self.schedule = self.program.schedule
        self.runner = devices.runner(recipe.device)
        normal_slots = [self._slot("buffer", n) for n in range(len(normal.leaves))]
        slot_of = dict(zip(normal.leaves, normal_slots, strict=True))
        steps = self._divide(recipe, normal, slot_of, fixed, made)
        self.native = Native(steps, self.program.slots, self.program.builder)
        self.slots = memoryview(self.native.records.slots)
        self.flag = memoryview(self.native.records.flag)
        for slot, value in self.program.slots.constants.items():
            self.slots[slot] = value
        self.slots[0] = self.native.records.flag.ctypes.data
        pairs = zip(toposort(normal.roots), toposort(recipe.roots), strict=True)
        renamed = {old: new for new, old in pairs if old.op in INDEXING}
        self.lines = {
            renamed.get(old, old): place for old, place in all_below(recipe.roots).items()
        }
        self.arguments = len(recipe.arguments)
        self.closed = Closed(recipe, [slot_of.get(leaf, 0) for leaf in recipe.leaves], self.slots)
        self._number_inputs(recipe, normal, slot_of)
        self._number_outputs(recipe)
        self._number_overwritten(recipe)
        self._number_temporaries()

    # ---- building --------------------------------------------------------------------------------
    def _slot(self, *what: Any) -> int:
        """The slot of something in the program; 0 if the program does not use it."""
        return self.program.slots.known.get(what, 0)

    def _divide(
        self,
        recipe: Recipe,
        normal: Normal,
        slot_of: Mapping[Node, int],
        fixed: set[Node],
        made: set[Node],
    ) -> tuple[Step, ...]:
        """The steps of the program, with what is the same at every call in front. slot_of: the slot
        of each leaf, 0 if the program does not read it. fixed: the leaves that hold the same at
        every call, as long as nobody outside writes to them; made: those of them that the function
        made of numbers."""
        given = {*recipe.floats, *recipe.keys}
        same = {slot_of.get(leaf, 0) for leaf in fixed} - {0}
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
            if kind == "constant" and slot_of[leaf]:  # made during the trace, and read
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
        self.results_out = [(root, *self.kinds_out[root]) for root in self.results]
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
        self.gradients = Gradients(placed, reads, self.slots, self._tensor, self.arguments)
        self.gradients.hold(self.closed.cells)
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
        self.donated = recipe.donated
        gone = {recipe.leaf_of(owner) for owner in (*owners, *recipe.donated)}
        self.carrying = {
            root: not gone.isdisjoint(toposort(recipe.roots[root])) for root in recipe.carrying
        }  # root -> whether what it was computed from is overwritten
        # (beside what is overwritten in place)
        self.has_effects = bool(
            self.replaced or self.swapped or self.closed.arguments or self.cleared or self.carrying
        )
        # nothing is left to do after the native call but to hand out results in memory of their own
        plain = not (self.has_effects or self.has_gradients or self.copies or owners)
        slots = dict(self.own)
        plain = plain and not self.symbolic and sorted(slots) == sorted(self.results)
        self.plain: list[tuple[Spare, int]] | None = None
        if plain:
            self.plain = [
                (Spare(*self.kinds_out[root], self.device, self.bytes[root]), slots[root])
                for root in self.results
            ]

    def _number_temporaries(self) -> None:
        """One block of memory holds the arena and every scratch buffer of known size."""
        kept = {slot for slot, _ in self.kept.sizes} if self.kept else set()
        placed = zip(self.program.temporary_slots, self.program.temporary_offsets, strict=True)
        slots, offsets = [], []
        for slot, offset in placed:
            if slot not in kept:
                slots.append(slot)
                offsets.append(offset)
        scratch, scratch_bytes = self.program.place_scratch(kept)
        size = host.place(self.schedule.arena, scratch_bytes)
        slots += [slot for slot, _ in scratch]
        offsets += [size + offset for _, offset in scratch]
        size += scratch_bytes
        self.scratch = [each for each in self.program.scratch if not isinstance(each[1], int)]
        self.block_bytes = size
        self.needs_memory = bool(size or self.scratch)
        self.block_slots = np.array(slots, np.int64)
        self.block_offsets = np.array(offsets, np.int64)
        self.block_address = -1
        self.kept_block: Buffer | None = None  # a small one is not given back between calls

    def direct(self, kinds: Sequence[Any]) -> Direct | None:
        """The way to `replay` for arguments of these kinds, if there is one."""
        if self.plain is None:
            return None
        places = dict(self.argument_slots)
        return Direct(kinds, [places.get(n, 0) for n in range(self.arguments)], self.slots)

    # ---- running ---------------------------------------------------------------------------------
    def replay(self, direct: Direct, arguments: Sequence[Any]) -> list[Any] | None:
        """`run` by the way that `direct` gave; None if the arguments are not of its kinds."""
        closed = self.closed
        if closed.cells and (closed.puts != puts[0] or closed.moves != memory.moves):
            closed.look()
        return self._run_plain(arguments, (), ()) if direct.take(arguments) else None

    def run(
        self, arguments: Sequence[Any], floats: Sequence[float], keys: Sequence[int]
    ) -> list[Any]:
        """Replay. Returns the tensors that the function returns. The lock is held.

        arguments: the tensor arguments, which are in memory; floats: the float arguments; keys: a
        random key for each draw. Stale if a closed-over tensor has become another kind of tensor.
        """
        slots, closed = self.slots, self.closed
        if closed.cells and (closed.puts != puts[0] or closed.moves != memory.moves):
            closed.look()
        if closed.changed or closed.arguments:
            closed.secure(arguments)
        buffers = memory.buffers
        for position, slot in self.argument_slots:
            slots[slot] = buffers[arguments[position].node.arg[0]].address
        for position, slot in self.float_slots:
            slots[slot] = _LONG.unpack(_DOUBLE.pack(floats[position]))[0]
        for position, slot in self.key_slots:
            slots[slot] = _signed(keys[position])
        if self.plain is not None:
            return self._run_plain(arguments, floats, keys)
        variables = self._bind(arguments) if self.symbolic else NO_BINDINGS
        held: dict[int, Buffer] = {}
        for root, slot in self.own:
            size = nbytes(self.infos[root], variables) if self.symbolic else self.bytes[root]
            held[root] = buffer = Buffer(size)
            if slot:
                slots[slot] = buffer.address
        block = self._place_temporaries(variables) if self.needs_memory else None
        call = Call(arguments, closed.cells, floats, keys, variables)
        hand_out_gradients = self.has_gradients and self.gradients.place(call)
        self._launch(arguments, floats, keys, variables)
        del block  # not before: from here on others may write to this memory
        if self.copies:
            self._copy(call, held)
        if hand_out_gradients:
            self.gradients.hand_out(call)
        return self._hand_out(call, held)

    def _run_plain(
        self, arguments: Sequence[Any], floats: Sequence[float], keys: Sequence[int]
    ) -> list[Any]:
        """The rest of `run` where nothing comes after the native call but to hand out results."""
        slots, buffers, make = self.slots, memory.buffers, self.make
        results = []
        for spare, slot in self.plain or ():
            leaf = spare.leaf()
            if slot:
                slots[slot] = buffers[leaf.arg[0]].address
            results.append(make(leaf, NO_BINDINGS))
        block = self._place_temporaries(NO_BINDINGS) if self.needs_memory else None
        self._launch(arguments, floats, keys, NO_BINDINGS)
        del block
        return results

    def _launch(
        self,
        arguments: Sequence[Any],
        floats: Sequence[float],
        keys: Sequence[int],
        variables: dict[str, int],
    ) -> None:
        """The native call."""
        records, flag, kept = self.native.records, self.flag, self.kept
        if kept is not None and (
            kept.clock != memory.clock or kept.places is not self.closed.places
        ):
            kept.prepare(records, self.slots, self.closed.places)
        try:
            if config.DEBUG.value:
                self.program.run_timed(self.runner, records, variables)
            else:
                self.runner.run(records)
        except BaseException:
            flag[0] = 0
            memory.disturb()
            if not records.completed:
                self.gradients.drop(Call(arguments, self.closed.cells, floats, keys, variables))
            raise
        failed = flag[0]
        if failed:
            flag[0] = 0
            memory.disturb()
            call = Call(arguments, self.closed.cells, floats, keys, variables)
            self.gradients.drop(call)
            raise self._out_of_range(failed, call)
        if kept is not None and kept.clock < 0:
            kept.made(records)

    def replace(self, new: Mapping[Any, Any]) -> None:
        """Closed-over tensors have been replaced by others. Stale if that cannot be."""
        self.closed.replace(new)
        self.gradients.hold(self.closed.cells)

    # ---- memory ----------------------------------------------------------------------------------
    def _bind(self, arguments: Sequence[Any]) -> dict[str, int]:
        """The values of the Variables in this call, written to where the program reads them."""
        variables = NO_BINDINGS
        for cell in (*arguments, *self.closed.cells):
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
        make, variables = self.make, call.variables
        results = []
        for root, dtype, shape in self.results_out:
            # (one without memory of its own is in that of a donated argument)
            buffer = held[root] if root in held else memory[call.cells[self.owner_of[root]].node]
            results.append(make(memory.leaf(dtype, shape, self.device, buffer), variables))
        if self.has_effects:
            self._put_effects(call, held, results)
        overwritten = self.closed.overwritten_slots
        if overwritten and (memory.history or not memory.watched.isdisjoint(overwritten)):
            memory.overwritten_slots(overwritten)
        return results

    def _put_effects(self, call: Call, held: dict[int, Buffer], results: list[Any]) -> None:
        """What a call leaves behind beside its results; what the results were computed from."""
        # of the leaves that the call read: cells get new ones below
        graph = CallGraph(self.whole, call) if False in self.carrying.values() else None
        leaves = {
            root: made.node
            for root, made in zip(self.results, results, strict=True)
            if root in self.carrying
        }
        for effect in self.replaced:
            leaves[effect.root] = leaf = self._leaf(effect.root, held[effect.root])
            cell = call.cells[effect.owner]
            cell.hold(leaf)
            cell.bindings = call.variables
            if cell._requires_grad:
                track(cell, leaf)
        if leaves:
            self._remember(leaves, graph)
        if self.swapped:
            self._swap(call, held)
        for owner in self.cleared:
            call.cells[owner]._grad = None
        for position in self.closed.arguments:
            memory.overwritten(call.arguments[position].node)
        for position in self.donated:
            cell = call.arguments[position]
            cell.hold(memory.leaf(cell.node.dtype, cell.node.shape, cell.node.arg[2]))

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
            if position >= 0 and self.closed.slots[position]:
                self.slots[self.closed.slots[position]] = held[effect.root].address
        # all that has moved since the slots were filled is what was swapped here
        self.closed.moves = self.gradients.moves = memory.moves

    def _remember(self, leaves: dict[int, Node], graph: CallGraph | None) -> None:
        """Let gradients flow back through results, but not through what was overwritten."""
        for root, leaf in leaves.items():
            if self.carrying.get(root, False):
                forget(leaf)
            elif root in self.carrying:
                assert graph is not None
                remember(leaf, partial(graph.root, root), memory.clock)

    def _out_of_range(self, flag: int, call: Call) -> IndexError:
        """The error for a check that failed; see `realize.out_of_range`."""
        failed = self.program.checks[min(flag, len(self.program.checks)) - 1]
        graph = CallGraph(self.graph, call)
        values = graph.roots()
        for node, line in self.lines.items():
            put(graph.node(node), line)

        def compute(node: Node) -> np.ndarray:
            cell = Cell(node, call.variables)
            realize([cell])
            return memory[cell.node].array(node.dtype, (-1,))

        found = failure.find(failed, Normal(self.graph.roots, (), ()), values)
        return IndexError(failure.describe(failed, found, call.variables, compute))


# ---- small parts ---------------------------------------------------------------------------------
def _made(recipe: Recipe, normal: Normal) -> set[Node]:
    """The leaves that the function itself made of numbers."""
    outside = {*recipe.arguments, *recipe.leaves, *recipe.gradients.values()}
    return {leaf for leaf in normal.leaves if leaf not in outside}


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


def _signed(bits: int) -> int:
    """The bits of a slot as the signed number that it is stored as."""
    return bits - (1 << 64) if bits >= 1 << 63 else bits
