"""Where fresh memory lies."""

from __future__ import annotations

from itertools import pairwise

import pytest

from treadle import host
from treadle.engine.storage import Allocator

KIB = 1 << 10


@pytest.mark.parametrize("size", [64, 4096, 64 * KIB, 300 * KIB, 1024 * KIB, 5000 * KIB])
def test_memory_is_as_large_and_as_aligned_as_it_should_be(size: int) -> None:
    taken = [Allocator().take(size) for _ in range(2)]
    for memory, address in taken:
        assert memory.nbytes >= size and memory.ctypes.data == address
        assert address % host.alignment(size) == 0


def test_arrays_of_a_few_pages_share_large_ones_and_never_bytes() -> None:
    allocator = Allocator()
    taken = [allocator.take(size * KIB) for size in (100, 300, 900, 64, 700, 1024, 80) * 3]
    spans = sorted((address, address + memory.nbytes) for memory, address in taken)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    blocks = {id(memory.base) for memory, _ in taken}
    assert len(blocks) < len(taken) // 2


def test_a_large_array_has_a_block_of_its_own_and_begins_at_a_large_page() -> None:
    allocator = Allocator()
    kept = allocator.take(100 * KIB)
    memory, address = allocator.take(3 << 20)
    assert address % host.LARGE_PAGE == 0 and memory.base is not kept[0].base


def test_what_is_cleared_holds_no_block() -> None:
    allocator = Allocator()
    allocator.give(*allocator.take(100 * KIB))
    allocator.clear()
    assert allocator.kept == 0 and not allocator.rest.nbytes
