"""Matrix instructions of a CPU as an action: what it means, what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernel.kernels import (
    CPU,
    Checked,
    buffer,
    check,
    elementwise,
    load,
    matmul,
    ranges,
    reduce,
    row_sum,
    sink,
    softmax,
    store,
)
from treadle.backend.base import Target
from treadle.ir import ops
from treadle.ir.dtype import DType, bfloat16, float32, int8, int32, uint8
from treadle.ir.matrix import MATRICES
from treadle.ir.node import Node
from treadle.kernel.actions import Split, apply
from treadle.kernel.build import build
from treadle.kernel.heuristic import heuristic
from treadle.kernel.kernel import ScheduleError
from treadle.kernel.lower import lower
from treadle.kernel.mma import Mma
from treadle.kernel.pad import Pad
from treadle.kernel.schedule_text import parse_actions, show_actions
from treadle.kernel.stage import Stage

TILES = replace(
    CPU,
    intrinsics=frozenset(matrix.feature for matrix in MATRICES) | {"shuffle"},
    vector_bytes=64,
    registers=32,
)
GOLDEN = (Path(__file__).parent / "golden" / "matmul_tiles.txt").read_text()
PADDED = """
    pad i 32
    pad j 32
    pad k 32
    split i: io | iu(2) | im(16)
    split j: jo | ju(2) | jm(16)
    split k: ko | km(32)
    reorder jo, io
    unroll iu, ju
    mma add0: im, jm, km
    stage arg1 at jo as rows layout 0,1
    stage arg2 at root as panel root layout 0,1 group 0,2 block 32
    split panel0: panel0q | panel0p(2)
    mma copy_panel: panel0p
    split panel1: panel1o | panel1v(16)
    vector panel1v
    detach add0 at io as t
    split tj: tjo | tjv(16)
    vector tjv
"""


def named(checked: Checked, name: str) -> list[Node]:
    """The intrinsics of this name in all functions."""
    nodes = (n for f in checked.functions for n in f.body if n.op is ops.INTRINSIC)
    return [n for n in nodes if n.arg[0] == name]


def test_a_product_by_tiles() -> None:
    actions = parse_actions(GOLDEN)
    assert parse_actions(show_actions(actions)) == actions
    checked = check(matmul(256, 64, 64, dtype=bfloat16), actions, target=TILES, tolerance=1e-2)
    assert len(named(checked, "mma")) == 4
    assert len(named(checked, "tile_read")) == 4  # each serves two products
    assert len(named(checked, "tile_write")) == 4


@pytest.mark.parametrize("shape", [(40, 50, 70), (5, 7, 9), (32, 32, 33), (33, 17, 64)])
def test_the_last_tiles_are_padded(shape: tuple[int, int, int]) -> None:
    root = matmul(*shape, dtype=bfloat16)
    check(root, parse_actions(PADDED), target=TILES, tolerance=2e-2)


def test_an_infinity_past_the_end_is_not_seen() -> None:
    root = matmul(16, 16, 40, dtype=bfloat16)
    arrays = {2: np.full((40, 16), 0x3F80, np.uint16), 1: np.full((16, 40), 0x7F80, np.uint16)}
    checked = check(root, parse_actions(PADDED), target=TILES, arrays=arrays)
    assert (checked.arrays[0] == 0x7F80).all()  # inf * 1, and no inf * 0


@pytest.mark.parametrize("left", [int8, uint8])
@pytest.mark.parametrize("right", [int8, uint8])
def test_bytes(left: DType, right: DType) -> None:
    n, m, k = 40, 50, 70
    i, j, s = ranges(n, m, k)
    a = ops.CAST(load(buffer(1, n, k, dtype=left), i, s), dtype=int32)
    b = ops.CAST(load(buffer(2, k, m, dtype=right), s, j), dtype=int32)
    root = sink(store(buffer(0, n, m, dtype=int32), reduce("add", ops.MUL(a, b), s), i, j))
    random = np.random.default_rng(0)
    info = [np.iinfo(dtype.storage) for dtype in (left, right)]
    arrays = {
        1: random.integers(info[0].min, info[0].max, (n, k)).astype(left.storage),
        2: random.integers(info[1].min, info[1].max, (k, m)).astype(right.storage),
    }
    text = (
        PADDED.replace("km(32)", "km(64)")
        .replace("0,2", "0,4")
        .replace("pad k 32", "pad k 64")
        .replace("panel0p(2)", "panel0p(4)")
    )
    checked = check(root, parse_actions(text), target=TILES, arrays=arrays, tolerance=0)
    assert {n.arg[1:3] for n in named(checked, "mma")} == {(left.name, right.name)}


def test_what_is_refused() -> None:
    split = [Split(n, f"{n}o", ((f"{n}m", size),)) for n, size in (("i", 16), ("j", 16), ("k", 32))]

    def refused(*actions: object, root: Node, target: object = TILES) -> str:
        with pytest.raises(ScheduleError) as error:
            lower(apply(build(root, target), actions), "f")  # type: ignore[arg-type]
        return str(error.value)

    root = matmul(64, 64, 64, dtype=bfloat16)
    tile = Mma("add0", ("im", "jm", "km"))
    assert "CPU has a matrix instruction" in refused(*split, tile, root=root, target=CPU)
    wide = [*split[:2], Split("k", "ko", (("km", 16),))]
    assert "takes m = 16, n = 16 and k = 32" in refused(*wide, tile, root=root)
    turned = Mma("add0", ("jm", "im", "km"))
    assert refused(*split, turned, root=root).startswith("store0 runs inside of a matrix")
    assert "detach add0 first" in refused(*split, tile, root=root)
    detach = parse_actions("detach add0 at jo as t")
    assert "arg2 lies in no groups of 2 along km" in refused(*split, tile, *detach, root=root)
    odd = matmul(40, 64, 64, dtype=bfloat16)
    assert "the last tile of i is not whole: pad it first" in refused(*split, tile, root=odd)
    padded = [Pad("i", 16), *split, tile, *detach]
    assert "arg1 is read under a guard: stage it" in refused(*padded, root=odd)


def test_what_cannot_be_padded() -> None:
    kernel = build(matmul(40, 64, 64, dtype=bfloat16), TILES)
    with pytest.raises(ScheduleError, match="io is not a whole range any more"):
        apply(kernel, [Split("i", "io", (("ii", 4),)), Pad("io", 4)])
    with pytest.raises(ScheduleError, match="a size of at least 1"):
        apply(kernel, [Pad("i", 0)])
    with pytest.raises(ScheduleError, match="there would be something to sum"):
        apply(build(row_sum(5, 7), TILES), [Pad("j", 4)])


@pytest.mark.parametrize("root", [row_sum(5, 7), elementwise(5, 7), softmax(5, 7)])
def test_padding_keeps_the_meaning(root: Node) -> None:
    check(root, [Pad("i", 4)])


# ---- squares that are turned ---------------------------------------------------------------------


TURNED = """
    stage arg2 at root as panel root layout 1,0
    split panel0: panel0o | panel0v(16)
    split panel1: panel1o | panel1v(16)
    transpose copy_panel: panel0v, panel1v
"""


def test_a_copy_turns_squares() -> None:
    checked = check(matmul(3, 32, 48), parse_actions(TURNED), target=TILES)
    writes = [n for n in checked.functions[0].body if n.op is ops.WRITE and n.dtype.lanes == 16]
    reads = [n for n in checked.functions[0].body if n.op is ops.READ and n.dtype.lanes == 16]
    assert len(writes) == 16 and len(reads) == 16
    assert len(named(checked, "shuffle")) == 16 * 4


def test_what_is_no_square() -> None:
    def refused(text: str, root: Node) -> str:
        with pytest.raises(ScheduleError) as error:
            lower(apply(build(root, TILES), parse_actions(text)), "f")
        return str(error.value)

    assert "are no square" in refused(
        TURNED.replace("panel0v(16)", "panel0v(8)"), matmul(3, 32, 48)
    )
    assert "the squares along panel1 are not all whole" in refused(TURNED, matmul(3, 40, 48))
    assert "is no copy to scratch memory" in refused("transpose add0: i, j", matmul(16, 16, 16))
    flat = TURNED.replace("1,0", "0,1")
    assert "does not lie side by side" in refused(flat, matmul(3, 32, 48))


# ---- what the heuristic does ---------------------------------------------------------------------


def takes_tiles(root: Node, target: Target = TILES) -> bool:
    return any(isinstance(action, Mma) for action in heuristic(build(root, target), target))


def test_when_the_heuristic_takes_them() -> None:
    assert takes_tiles(matmul(64, 64, 64, dtype=bfloat16))
    assert takes_tiles(matmul(33, 17, 65, left=True, right=True, dtype=bfloat16))
    assert not takes_tiles(matmul(64, 64, 64, dtype=bfloat16), CPU)
    assert not takes_tiles(matmul(64, 64, 64))
    assert not takes_tiles(matmul(4, 64, 64, dtype=bfloat16))
    assert not takes_tiles(matmul(64, 64, 16, dtype=bfloat16))


@settings(deadline=None, max_examples=12)
@given(
    st.integers(8, 70), st.integers(8, 70), st.integers(32, 80), st.booleans(), st.booleans(),
    st.sampled_from([1, 2, 16]),
)  # fmt: skip
def test_whatever_the_heuristic_does(
    n: int, m: int, k: int, left: bool, right: bool, threads: int
) -> None:
    target = replace(TILES, threads=threads, intrinsics=TILES.intrinsics | {"prefetch"})
    root = matmul(n, m, k, left, right, dtype=bfloat16)
    check(root, heuristic(build(root, target), target), target=target, tolerance=3e-2)


def test_the_rows_stay_where_they_are_if_they_can() -> None:
    def staged(root: Node) -> set[str]:
        actions = heuristic(build(root, TILES), TILES)
        return {action.buffer for action in actions if isinstance(action, Stage)}

    assert staged(matmul(64, 64, 64, dtype=bfloat16)) == {"arg2"}
    assert staged(matmul(64, 64, 70, dtype=bfloat16)) == {"arg1", "arg2"}
    assert staged(matmul(64, 64, 64, left=True, dtype=bfloat16)) == {"arg1", "arg2"}


def test_the_smaller_factor_is_packed() -> None:
    """x @ w.T with few rows of x: the rows of w are those of the tiles, and results are turned."""
    root = matmul(16, 1024, 256, right=True, dtype=bfloat16)
    actions = heuristic(build(root, TILES), TILES)
    assert [a.buffer for a in actions if isinstance(a, Stage)] == ["arg1", "t"]


def test_rows_of_several_axes() -> None:
    """A batch of matrices times one: the rows are one range, and stay where they are."""
    i, j, o, s = ranges(2, 24, 20, 32)
    a = ops.CAST(load(buffer(1, 2, 24, 32, dtype=bfloat16), i, j, s), dtype=float32)
    b = ops.CAST(load(buffer(2, 32, 20, dtype=bfloat16), s, o), dtype=float32)
    total = ops.CAST(reduce("add", ops.MUL(a, b), s), dtype=bfloat16)
    root = sink(store(buffer(0, 2, 24, 20, dtype=bfloat16), total, i, j, o))
    actions = heuristic(build(root, TILES), TILES)
    assert [a.buffer for a in actions if isinstance(a, Stage)] == ["arg2"]
    check(root, actions, target=TILES, tolerance=2e-2)
    with pytest.raises(ScheduleError, match="other ranges are parts of ij"):
        apply(build(root, TILES), parse_actions("fuse i, j: ij\npad ij 5"))
