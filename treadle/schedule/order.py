"""In which order kernels run, which of them run together, and what is written over old memory.

Kernels depend on each other through buffers. A buffer that the level makes is read after its last
writer; an *old* one (the caller's, or a loop's carry) is read before it is overwritten.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from treadle.ir import ops
from treadle.ir.node import Node, remember, toposort
from treadle.schedule.plan import FOREVER, Call, Item, Loop

REACHED = 1024  # items that the search for a cycle visits before it gives up


@dataclass(eq=False)
class Dependences:
    """after[n]: the items that wait for item n. An item may be None: it only joins others."""

    items: list[Item | None]
    old: set[int]
    after: list[set[int]] = field(default_factory=list)
    readers: dict[int, list[int]] = field(default_factory=dict)
    writers: dict[int, list[int]] = field(default_factory=dict)
    latest: dict[int, list[int]] = field(default_factory=dict)  # readers since the last writer
    gate: int = -1  # waits for every checked kernel

    def __post_init__(self) -> None:
        self.after = [set() for _ in self.items]
        for number, item in enumerate(self.items):
            assert item is not None
            for buffer in item.writes:
                self.writers.setdefault(buffer, []).append(number)
            for buffer in item.reads:
                self.readers.setdefault(buffer, []).append(number)
        for buffer, writers in self.writers.items():
            for earlier, later in pairwise(writers):
                self.after[earlier].add(later)
            for reader in self.readers.get(buffer, ()):
                if reader in writers:
                    continue
                if buffer in self.old:
                    self.after[reader].add(writers[0])
                else:
                    self.after[writers[-1]].add(reader)
        for number, item in enumerate(self.items):
            assert item is not None
            for buffer in item.waits:
                for writer in self.writers.get(buffer, ())[-1:]:
                    self.after[writer].add(number)
        self.latest = {buffer: list(readers) for buffer, readers in self.readers.items()}
        self.find_tested()

    def add(self, item: Item | None, waits_for: Iterable[int]) -> int:
        """One more item that waits for others."""
        number = len(self.items)
        self.items.append(item)
        self.after.append(set())
        for other in waits_for:
            self.after[other].add(number)
        if item is not None:
            for buffer in item.writes:
                self.writers.setdefault(buffer, []).append(number)
            for buffer in item.reads:
                self.readers.setdefault(buffer, []).append(number)
                self.latest.setdefault(buffer, []).append(number)
        return number

    def find_tested(self) -> None:
        """Calls whose every check is made by an earlier call too cannot fail: they wait for it."""
        first: dict[tuple[Node, int | Node], int] = {}
        for number, item in enumerate(self.items):
            if not isinstance(item, Call) or not item.tests:
                continue
            before = {first.get(test, -1) for test in item.tests}
            if -1 not in before and not self.leads_to(number, before):
                item.may_fail = False
                for other in before:
                    self.after[other].add(number)
            else:
                for test, every in item.tests.items():
                    if every:
                        first.setdefault(test, number)

    def leads_to(self, start: int, goals: set[int]) -> bool:
        """Whether one of the goals waits, directly or not, for `start`. Also True if the search is
        given up."""
        seen = {start}
        stack = [start]
        while stack and goals:
            for following in self.after[stack.pop()]:
                if following in goals or len(seen) > REACHED:
                    return True
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
        return False

    @cached_property
    def checked(self) -> set[int]:
        """The items that may fail."""
        return {n for n, item in enumerate(self.items) if item is not None and _is_checked(item)}

    def overwrite(self, new: int, old: int, guarded: bool) -> bool:
        """Let what is written to buffer `new` be written over buffer `old` instead, if that is
        right; the items are then ordered for it. guarded: the old value is the caller's, who must
        find it unharmed if any index of the program turns out to be wrong.

        It is right if every other reader of `old` can come first, and the first writer reads it
        only at the element that it writes, outside of reductions, and later writers do not.
        """
        writers = self.writers.get(new, [])
        copied = bool(writers) and self._is_copy(writers[0], old)
        if copied:
            writers = writers[1:]
        if not writers or (old in self.old and old in self.writers):
            return False
        before = set(self.latest.get(old, ())) - set(self.writers[new])
        others = before | self.checked if guarded else before
        if guarded and self.checked.intersection(writers):
            return False
        for writer in writers:
            item = self.items[writer]
            if not isinstance(item, Call) or not reads_in_step(item, new, old):
                return False
            if writer is not writers[0] and old in item.reads:
                return False
        if self.leads_to(writers[0], others - set(writers)):
            return False
        if guarded:
            if self.gate < 0:
                self.gate = self.add(None, self.checked)
            before.add(self.gate)
        for other in before:
            self.after[other].add(writers[0])
        if copied:  # it only begins: what waits for it waits for what it waited for
            self.items[self.writers[new][0]] = None
        self.writers.setdefault(old, []).extend(writers)
        return True

    def join_updates(self, kept: set[int]) -> None:
        """A value that begins as a copy of a temporary, and is then written in part, shares its
        memory if it may. kept: the buffers whose values are results."""
        for new in list(self.writers):
            first = self.items[self.writers[new][0]]
            if len(self.writers[new]) < 2 or not isinstance(first, Call) or len(first.reads) != 1:
                continue
            (old,) = first.reads
            own = old in self.writers and old not in kept and old not in self.old
            source, target = (old, new) if new in kept else (new, old)
            moved = {*self.writers.get(source, ()), *self.readers.get(source, ())}
            latest = self.latest.get(new, [])
            if own and self._is_copy(self.writers[new][0], old) and self.overwrite(new, old, False):
                writers = self.writers[old]
                del self.writers[source]
                self.writers[target] = writers
                self.readers.setdefault(target, []).extend(self.readers.pop(source, []))
                self.latest[target] = latest
                rename(
                    [item for n in moved if (item := self.items[n]) is not None], {source: target}
                )

    def _is_copy(self, number: int, source: int) -> bool:
        item = self.items[number]
        if not isinstance(item, Call) or item.reads != {source} or len(item.writes) != 1:
            return False
        store = item.kernel.src[0]
        value = store.src[1]
        if value.op is not ops.LOAD or value.src[1:] != store.src[2:]:
            return False
        whole: bool = value.src[0].arg[1] == store.src[0].arg[1]  # not a part of a larger array
        return whole


def everything(items: Sequence[Item]) -> list[Item]:
    """The items and those in the bodies of loops, in launch order."""
    found: list[Item] = []
    stack = list(items[::-1])
    while stack:
        item = stack.pop()
        found.append(item)
        if isinstance(item, Loop):
            stack.extend(item.body[::-1])
    return found


def rename(items: Sequence[Item], renamed: dict[int, int]) -> None:
    """Let the items, and those in the bodies of loops, use other buffers."""
    if not renamed:
        return
    for item in everything(items):
        item.reads = frozenset([renamed.get(b, b) for b in item.reads])
        item.writes = frozenset([renamed.get(b, b) for b in item.writes])
        item.waits = frozenset([renamed.get(b, b) for b in item.waits])
        if isinstance(item, Call):
            item.buffers = tuple([renamed.get(b, b) for b in item.buffers])
        elif item.test is not None:
            buffer, wanted = item.test
            item.test = renamed.get(buffer, buffer), wanted


def _is_checked(item: Item) -> bool:
    """Whether the program may end in this item: at a wrong index, or because it is given up, as a
    loop without end has to be."""
    if isinstance(item, Call):
        return item.may_fail
    return item.trips == FOREVER or any(_is_checked(inner) for inner in item.body)


def reads_in_step(call: Call, new: int, old: int) -> bool:
    """Whether a call reads buffer `old`, if at all, only at the elements that it writes to `new` at
    that moment, so that the two may be the same memory."""
    if old not in call.reads:
        return True
    stored, loaded, loops = remember(call.kernel, "accesses", _accesses)
    places: set[tuple[Node, ...] | None] = set()
    masks: set[int] = set()  # the ranges of the stores: those of other loops come later or before
    for position, buffer in enumerate(call.buffers):
        if buffer == new:
            places |= stored.get(position, set())
        if buffer == old:
            places |= loaded.get(position, set())
        if buffer in (new, old):
            masks |= loops.get(position, set())
    return len(places) == 1 and None not in places and len(masks) == 1


Places = dict[int, set[tuple[Node, ...] | None]]


def _accesses(sink: Node) -> tuple[Places, Places, dict[int, set[int]]]:
    """For each buffer of a kernel the indices that it is stored at, and loaded at (None stands for
    any inside a reduction); and the ranges, as masks, of the stores that write it or read it."""
    order = toposort(sink)
    inside = toposort([s for n in order if n.op is ops.KREDUCE for s in n.src])
    stored: Places = {}
    loaded: Places = {}
    for node in order:
        if node.op is ops.LOAD:
            loaded.setdefault(node.src[0].arg[0], set()).add(node.src[1 : 1 + node.arg])
        elif node.op is ops.STORE:
            stored.setdefault(node.src[0].arg[0], set()).add(node.src[2 : 2 + node.arg[0]])
    for node in inside:
        if node.op is ops.LOAD:
            loaded[node.src[0].arg[0]].add(None)
    loops: dict[int, set[int]] = {}
    for store in sink.src:
        touched = {node.src[0].arg[0] for node in toposort(store) if node.op is ops.LOAD}
        for position in touched | {store.src[0].arg[0]}:
            loops.setdefault(position, set()).add(store.free)
    return stored, loaded, loops


def launch_order(graph: Dependences, nbytes: Callable[[int], int]) -> list[Item]:
    """The items in an order that keeps little memory alive: whatever frees more than it takes runs
    as soon as it can, else the order is that of the program. nbytes: of a buffer that is allocated
    and freed within the level (0 for others)."""
    items = graph.items
    waiting = [0] * len(items)
    for later_items in graph.after:
        for number in later_items:
            waiting[number] += 1
    left: dict[int, set[int]] = {b: set(readers) for b, readers in graph.readers.items()}
    allocated: set[int] = set()
    done = [False] * len(items)

    def key(number: int) -> tuple[int, int, int]:
        item = items[number]
        net = 0
        if item is not None:
            net += sum(nbytes(b) for b in item.writes if b not in allocated)
            net -= sum(nbytes(b) for b in item.reads if len(left[b]) == 1)
        return (0, net, number) if net <= 0 else (1, 0, number)

    ready = [key(number) for number, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order: list[Item] = []
    while ready:
        number = heapq.heappop(ready)[2]
        if done[number]:
            continue
        done[number] = True
        item = items[number]
        if item is not None:
            order.append(item)
            allocated |= item.writes
            for buffer in item.reads:
                left[buffer].discard(number)
                if len(left[buffer]) == 1:  # now its last reader is worth more
                    (last,) = left[buffer]
                    if waiting[last] == 0:
                        heapq.heappush(ready, key(last))
        for later in graph.after[number]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heapq.heappush(ready, key(later))
    assert all(done), "the kernels wait for each other in a circle"
    return order


def number_phases(items: Sequence[Item], first: int = 0) -> int:
    """Give equal phase numbers to consecutive items that do not depend on each other; a loop is a
    phase of its own, and the phases of its body follow its number. Returns the next free number."""
    phase = first - 1
    reads: set[int] = set()
    writes: set[int] = set()
    may_fail = overwrites = False
    previous: Item | None = None
    for item in items:
        checked = _is_checked(item)
        in_place = isinstance(item, Call) and item.in_place
        together = (
            previous is not None
            and isinstance(item, Call)
            and isinstance(previous, Call)
            and not item.reads & writes
            and not item.writes & reads
            and not item.writes & writes
            and not (in_place and may_fail)
            and not (checked and overwrites)
        )
        if not together:
            phase += 1
            reads, writes = set(), set()
            may_fail = overwrites = False
        item.phase = phase
        if isinstance(item, Loop):
            phase = number_phases(item.body, phase + 1) - 1
        reads |= item.reads
        writes |= item.writes
        may_fail |= checked
        overwrites |= in_place
        previous = item
    return phase + 1
