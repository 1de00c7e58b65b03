"""What memory a captured function takes, told before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from treadle import host
from treadle.engine.capture import Captured
from treadle.engine.cell import NO_BINDINGS, bind
from treadle.engine.program import nbytes
from treadle.graph import shapes
from treadle.ir import index
from treadle.ir.node import Node
from treadle.schedule.plan import BufferInfo

SHOWN = 4  # temporaries that a message names


@dataclass(frozen=True)
class Memory:
    """The bytes of one call. arguments: of tensors among them; closed_over: of tensors from outside
    that it reads or changes, their gradients included; results: of what it returns and of new
    values and gradients that are not written over old ones; temporaries: of what exists only while
    it runs, and of packed copies that it keeps; largest: the largest temporaries in words."""

    arguments: int
    closed_over: int
    results: int
    temporaries: int
    largest: tuple[str, ...]

    @property
    def peak(self) -> int:
        """The most bytes that exist at once."""
        return self.arguments + self.closed_over + self.results + self.temporaries

    def __str__(self) -> str:
        return (
            f"{megabytes(self.peak)}: arguments {megabytes(self.arguments)}, "
            f"closed-over tensors {megabytes(self.closed_over)}, "
            f"results {megabytes(self.results)}, temporaries {megabytes(self.temporaries)}"
        )

    def check(self, name: str) -> None:
        """MemoryError if the machine has less."""
        available = host.memory_bytes()
        if available and self.peak > available:
            raise MemoryError(
                f"{name} needs {self}, and this machine has {megabytes(available)}; its largest "
                f"temporaries are {'; '.join(self.largest) or 'none'}: see treadle.checkpoint, or "
                "pass less data at a time"
            )


def megabytes(number: int) -> str:
    """Bytes in words."""
    return f"{number / 1e6:,.2f} MB"


def footprint(captured: Captured, arguments: Sequence[Any]) -> Memory:
    """The memory that a captured function takes when it is called with these tensors."""
    variables = NO_BINDINGS
    for cell in (*arguments, *captured.closed.cells):
        variables = bind(variables, cell.bindings)

    def total(nodes: Iterable[Node]) -> int:
        return sum(
            node.dtype.itemsize * prod(index.evaluate(size, variables) for size in node.shape)
            for node in nodes
        )

    everyone = [*arguments, *captured.closed.cells]
    gradients = [everyone[owner]._grad for owner in captured.gradient_slots]
    outside = [*captured.closed.cells, *[g for g in gradients if g is not None]]
    new = [root for root, _ in (*captured.own, *captured.copies)]
    new += [placed.root for placed in captured.gradients.new if not placed.in_place]
    infos = captured.infos
    kept = 0 if captured.kept is None else captured.kept.bytes
    scratch = sum(index.evaluate(size, variables) for _, size in captured.scratch)
    return Memory(
        arguments=total({cell.node for cell in arguments}),
        closed_over=total({cell.node for cell in outside}),
        results=sum(nbytes(infos[root], variables) for root in dict.fromkeys(new)),
        temporaries=captured.block_bytes + scratch + kept,
        largest=tuple(_largest(captured)),
    )


def _largest(captured: Captured) -> list[str]:
    """The largest temporaries, each with the operation that makes it."""
    makers: dict[int, str] = {}
    for call in captured.schedule.calls():
        for number in call.writes:
            makers.setdefault(number, call.reasons[0].node.op.name if call.reasons else "a kernel")
    sizes = [
        (_most(info), number, info)
        for number, info in enumerate(captured.schedule.buffers)
        if info.role == "temporary"
    ]
    sizes.sort(key=lambda each: -each[0])
    return [
        f"{megabytes(size)} of {info.dtype} {shapes.text(info.shape)} made by {makers[number]}"
        for size, number, info in sizes[:SHOWN]
    ]


def _most(info: BufferInfo) -> int:
    return info.dtype.itemsize * prod(index.bounds(size)[1] for size in info.shape)
