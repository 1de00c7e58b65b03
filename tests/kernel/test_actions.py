"""Each action keeps the meaning of a kernel, or says why it does not apply."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import (
    CPU,
    GPU,
    arrays_for,
    buffer,
    check,
    column_sum,
    convolution,
    elementwise,
    full_sum,
    load,
    matmul,
    number,
    ranges,
    reduce,
    row_sum,
    sink,
    softmax,
    store,
)

from treadle.ir import index, ops
from treadle.ir.dtype import bfloat16, float32, int32
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node
from treadle.kernel.actions import (
    Fuse,
    Hint,
    Kind,
    Place,
    Prefetch,
    Reorder,
    Split,
    Tail,
    apply,
    grid,
    local,
    unroll,
    vector,
)
from treadle.kernel.build import build
from treadle.kernel.cooperate import Cooperate, CooperateTasks
from treadle.kernel.gpu import Persist, Skew, Snake
from treadle.kernel.gpu import check as check_gpu
from treadle.kernel.kernel import ScheduleError
from treadle.kernel.layout import _require_inside, layouts
from treadle.kernel.lower import lower
from treadle.kernel.mma import Mma
from treadle.kernel.pad import Pad
from treadle.kernel.retile import Detach, StageStore, Subtotal
from treadle.kernel.stage import Keep, Stage

VARIABLE = index.variable("n", 0, 64)


def scatter() -> Node:
    """out[check(where[i]), j] += x[i, j], in order over i."""
    i, j = ranges(6, 5)
    where = ops.CAST(load(buffer(2, 6, dtype=int32), i), dtype=INDEX)
    place = Node(ops.CHECK, INDEX, (where, index.as_node(4)), 0)
    return sink(store(buffer(0, 4, 5), load(buffer(1, 6, 5), i, j), place, j, monoid="add"))


# ---- meaning -------------------------------------------------------------------------------------
@pytest.mark.parametrize("tail", ["peel", "mask", "shift"])
@pytest.mark.parametrize("columns", [5, 16, 37])
def test_a_tile_with_every_tail(tail: str, columns: int) -> None:
    actions = [
        Split("j", "jo", (("ju", 2), ("jv", 4))),
        Split("i", "io", (("iu", 3),)),
        unroll("iu", "ju"),
        vector("jv"),
        grid("io", "jo"),
        Tail("jo", tail),
        Tail("io", tail),
    ]
    check(matmul(10, columns, 4), actions)


def test_splits_in_blocks_and_tiles() -> None:
    actions = [
        Split("i", "ib", (("im", 2), ("iu", 3))),
        Split("ib", "ig", (("ic", 2),)),
        unroll("iu"),
        grid("ig"),
        Reorder(("ic", "im", "k")),
    ]
    check(matmul(25, 4, 5), actions)


def test_fused_ranges_are_walked_as_one() -> None:
    checked = check(
        elementwise(3, 5, 7),
        [
            Fuse(("i", "j", "k"), "ijk"),
            Split("ijk", "o", (("u", 2), ("v", 8))),
            unroll("u"),
            vector("v"),
        ],
    )
    assert checked.count(ops.TMOD, ops.TDIV) == 0


def test_fused_ranges_may_have_one_name_again_and_again() -> None:
    twice = [Fuse(("i", "j"), "i"), Fuse(("i", "k"), "i")]
    check(elementwise(3, 5, 7), [*twice, Split("i", "o", (("v", 8),)), vector("v")])


def test_fused_ranges_beside_others() -> None:
    """A bias that only one of the fused ranges moves: the quotient stays."""
    i, j = ranges(4, 6)
    value = ops.ADD(load(buffer(1, 4, 6), i, j), load(buffer(2, 6), j))
    checked = check(sink(store(buffer(0, 4, 6), value, i, j)), [Fuse(("i", "j"), "f")])
    assert checked.count(ops.TMOD) == 1


def test_partial_accumulators() -> None:
    actions = [
        Split("j", "jo", (("ju", 4), ("jv", 4))),
        unroll("ju"),
        vector("jv"),
        Cooperate("ju"),
        grid("i"),
    ]
    for columns in (3, 16, 50):
        for tail in ("peel", "mask"):
            check(row_sum(3, columns), [*actions, Tail("jo", tail)])


def test_tasks_share_a_reduction() -> None:
    checked = check(full_sum(7, 9), [Split("i", "ig", (("ir", 2),)), CooperateTasks("ig", "it")])
    assert [f.tasks for f in checked.functions] == [4, 1]
    assert [s.name for s in checked.kernel.statements] == ["add0_tasks", "add0", "store0"]


def test_tasks_share_a_reduction_of_rows_of_reductions() -> None:
    i, j = ranges(9, 5)
    row = reduce("max", load(buffer(1, 9, 5), i, j), j)
    root = sink(store(buffer(0), reduce("add", ops.EXP(row), i)))
    check(root, [CooperateTasks("i", "it")])
    check(root, [Split("i", "ig", (("ir", 4),)), CooperateTasks("ig", "it")])


def test_a_panel_is_staged() -> None:
    tile = [
        Split("j", "jo", (("ju", 2), ("jv", 4))),
        Split("i", "io", (("iu", 3),)),
        unroll("iu", "ju"),
        vector("jv"),
        grid("jo"),
    ]
    for transposed, layout in ((False, ()), (True, (1, 0))):
        root = matmul(7, 13, 5, right=transposed)
        axis = 0 if transposed else 1
        lanes = [Split(f"B{axis}", "Bo", (("Bv", 4),)), vector("Bv")]
        check(root, [*tile, Stage("arg2", "jo", "B", layout=layout), *lanes])
        at_root = check(root, [*tile, Stage("arg2", "root", "B", "root", layout), *lanes])
        assert len(at_root.functions) == 2


def test_a_patch_is_staged_with_zeros_around_it() -> None:
    root = convolution(2, 3, 6, 4, 3, pad=1)
    checked = check(root, [grid("i"), Stage("arg1", "i", "patch")])
    copy = checked.kernel.statement("copy_patch")
    assert [checked.kernel.leaves[name].extent for name in copy.order] == [2, 3, 8, 8]
    (sums,) = (s for s in checked.kernel.statements if s.reduced)
    assert all(len(n.src) == 1 + n.arg for n in sums.values[0].src if n.op is ops.LOAD)


def test_memory_of_the_whole_kernel_begins_where_the_border_does() -> None:
    """The border of an image has places below 0."""
    lanes = [Split("image3", "xo", (("xv", 4),)), vector("xv")]
    for pad, stride in ((1, 1), (2, 1), (2, 3)):
        root = convolution(2, 2, 5, 2, 3, pad, stride)
        checked = check(root, [grid("i"), Stage("arg1", "root", "image", "root"), *lanes])
        layout = layouts(checked.kernel)["image"]
        corner = [index.as_node(n) for n in (0, 0, -pad, -pad)]
        assert layout.offset(corner) is index.as_node(0)
        rows = 5 + 2 * pad
        assert layout.size == 2 * 2 * rows * (rows + -rows % 4)


@pytest.mark.parametrize("stride", [1, 3])
def test_staged_rows_of_an_unknown_number(stride: int) -> None:
    """As many are copied as are read, and there is room for them."""
    i, j, k = ranges(VARIABLE, 5, 3)
    row = index.add(index.mul(i, stride), k, -1)
    rows = index.dim(index.mul(VARIABLE, stride))
    inside = index.both(index.le(0, row), index.lt(row, rows))
    value = load(buffer(1, rows, 5), row, j, guard=inside)
    root = sink(store(buffer(0, VARIABLE, 5), reduce("add", value, k), i, j))
    for lanes in (0, 1):
        own = f"image{lanes}"
        actions = [Stage("arg1", "root", "image", "root"), Split(own, "o", (("v", 4),))]
        for n in (0, 1, 7, 64):
            checked = check(root, [grid("i"), *actions, vector("v")], variables={"n": n})
        size = layouts(checked.kernel)["image"].size
        copied, width = (stride * 7 + 3 - stride, 5)
        room = (-(-copied // 4) * 4 * width, copied * 8)[lanes]
        assert index.evaluate(size, {"n": 7}) == room


def test_memory_is_not_used_outside_of_its_bounds() -> None:
    i = index.range_(0, 8)
    _require_inside("panel", i, 8)
    for offset, size in ((index.sub(i, 1), 8), (index.add(i, 1), 8), (index.sub(-1, i), VARIABLE)):
        with pytest.raises(ScheduleError, match=r"panel would be used at .* outside of its"):
            _require_inside("panel", offset, size)


def test_one_of_two_places_of_a_buffer_is_staged() -> None:
    i, j, k = ranges(4, 4, 5)
    x = buffer(1, 4, 5)
    root = sink(
        store(buffer(0, 4, 4), reduce("add", ops.MUL(load(x, i, k), load(x, j, k)), k), i, j)
    )
    with pytest.raises(ScheduleError, match="read at 2 different places: say which, from arg1#0"):
        apply(build(root, CPU), [Stage("arg1", "i", "A")])
    check(root, [Stage("arg1#0", "i", "A")])
    check(root, [Stage("arg1#1", "i", "A")])


def test_a_dear_value_is_kept() -> None:
    checked = check(softmax(3, 17), [Keep("add1", "row"), grid("i")])
    assert checked.count(ops.EXP) == 1
    assert check(softmax(3, 17), [grid("i")]).count(ops.EXP) == 2


def test_a_store_leaves_the_tile() -> None:
    actions = [
        Split("j", "jo", (("ju", 2), ("jv", 4))),
        Split("l", "lo", (("lu", 3),)),
        unroll("lu", "ju"),
        vector("jv"),
        grid("i"),
        Reorder(("k", "jo", "lo", "m", "n", "o")),
        Detach("add0", "lo", "t"),
    ]
    root = convolution(2, 3, 6, 9, 3, pad=1)
    checked = check(root, actions)
    assert checked.kernel.statement("store0").order == ("i", "k", "jo", "lo", "tl", "tj")
    check(root, [*actions, Split("tl", "tlo", (("tlv", 4),)), vector("tlv"), Tail("tlv", "mask")])


def test_the_value_of_a_store_is_staged() -> None:
    tile = [
        Split("j", "jo", (("jv", 4),)),
        vector("jv"),
        Split("i", "io", (("iu", 2),)),
        unroll("iu"),
    ]
    check(matmul(5, 9, 3), [*tile, StageStore("store0", "jo", "C")])


def test_a_reduction_in_two_steps() -> None:
    i, j, k, m = ranges(3, 4, 5, 6)
    value = ops.MUL(load(buffer(1, 3, 5, 6), i, k, m), load(buffer(2, 4, 5, 6), j, k, m))
    root = sink(store(buffer(0, 3, 4), reduce("add", value, k, m), i, j))
    checked = check(root, [Reorder(("k", "i", "j", "l")), Subtotal("add0", "j")])
    assert [s.name for s in checked.kernel.statements] == ["add0_sub", "add0", "store0"]


def test_a_hint_marks_the_writes() -> None:
    checked = check(
        elementwise(32), [Split("i", "o", (("v", 8),)), vector("v"), Hint("store0", "nontemporal")]
    )
    writes = [n for f in checked.functions for n in f.body if n.op is ops.WRITE]
    assert [n.arg for n in writes] == ["nontemporal"]


def test_what_is_read_later_is_asked_for() -> None:
    asking = replace(CPU, intrinsics=frozenset({"prefetch"}))
    actions = [
        Split("j", "jo", (("jv", 4),)),
        vector("jv"),
        Prefetch("arg1", "add0", "i", 1),
        grid("i"),
    ]
    checked = check(row_sum(3, 12), actions, target=asking)
    asked = [n for f in checked.functions for n in f.body if n.op is ops.INTRINSIC]
    assert [n.arg for n in asked] == [("prefetch",)]


def test_what_is_written_out_asks_once_for_what_it_reads_several_times() -> None:
    asking = replace(CPU, intrinsics=frozenset({"prefetch"}))
    actions = [
        Split("j", "jo", (("ju", 4),)),
        Split("i", "io", (("iu", 2),)),
        unroll("iu", "ju"),
        Prefetch("arg1", "add0", "io", 1),
    ]
    checked = check(matmul(8, 8, 8), actions, target=asking)
    asked = [n for f in checked.functions for n in f.body if n.op is ops.INTRINSIC]
    assert len(asked) == 2  # a row of the tile each


def test_a_scatter_runs_in_order_and_beside_its_rows() -> None:
    check(scatter(), [grid("j")])
    check(scatter(), [Split("j", "jo", (("jv", 4),)), vector("jv")])


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_random_schedules_of_a_product(data: st.DataObject) -> None:
    """Any list of these shapes gives the same product."""
    draw = data.draw
    n, m, k = (draw(st.integers(2, 12), label=name) for name in "nmk")
    actions: list[object] = []
    inner = {}
    for name in draw(st.permutations("ijk")):
        size = draw(st.integers(1, 4))
        if draw(st.booleans()):
            actions.append(Split(name, f"{name}o", ((f"{name}u", size),)))
            inner[name] = f"{name}u"
            tails = ["peel", "mask"] if name == "k" else ["peel", "mask", "shift"]
            actions.append(Tail(f"{name}o", draw(st.sampled_from(tails))))
    unrolled = [leaf for leaf in inner.values() if draw(st.booleans())]
    lanes = draw(st.sampled_from([None, *(leaf for leaf in inner.values() if leaf[0] != "k")]))
    tile = {a.leaf: a.inner[0][1] for a in actions if isinstance(a, Split)}
    if lanes is not None and tile[lanes[0]] not in (2, 4):
        lanes = None
    unrolled = [leaf for leaf in unrolled if leaf != lanes]
    if unrolled:
        actions.append(unroll(*draw(st.permutations(unrolled))))
    if lanes is not None:
        actions.append(vector(lanes))
    outer = [f"{name}o" if name in inner else name for name in "ij"]
    if draw(st.booleans()):
        actions.append(grid(*draw(st.permutations(outer))))
    if draw(st.booleans()):
        actions.append(Stage("arg2", "root", "B", "root", draw(st.sampled_from([(), (1, 0)]))))
    check(matmul(n, m, k), actions)


# ---- refusals ------------------------------------------------------------------------------------
REFUSED = [
    ("split q: a | b(2)", matmul(4, 4, 4), [Split("q", "a", (("b", 2),))], "no leaf is called 'q'"),
    ("name", matmul(4, 4, 4), [Split("i", "j", (("b", 2),))], "there is a leaf called 'j' already"),
    ("word", matmul(4, 4, 4), [Split("i", "a b", (("c", 2),))], "is no name"),
    ("size", matmul(4, 4, 4), [Split("i", "a", (("b", 0),))], "at least 1"),
    ("lanes of lanes", matmul(4, 4, 4), [vector("i", "j")], "add0 has lanes already: i"),
    (
        "name of a range",
        matmul(4, 4, 4),
        [Split("k", "ko", (("ku", 2),)), Reorder(("ko", "i", "j")), CooperateTasks("ko", "k")],
        "there was a loop called 'k', which has parts now",
    ),
    ("far", matmul(4, 4, 4), [Split("i", "a", (("b", 10**30),))], "is longer than i, which runs 4"),
    ("far end", matmul(4, 4, 4), [Pad("i", 10**30)], "is longer than i, which runs 4 times"),
    (
        "inner",
        matmul(40, 4, 4),
        [Split("i", "a", (("b", 10),)), Split("b", "c", (("d", 4),))],
        "4 does not divide the 10 of b: the last part would run into the next block of a",
    ),
    ("kind", matmul(4, 4, 4), [unroll("i"), Split("i", "a", (("b", 2),))], "already unroll"),
    ("fuse one", matmul(4, 4, 4), [Fuse(("i",), "f")], "two leaves or more"),
    ("fuse apart", matmul(4, 4, 4), [Fuse(("i", "k"), "f")], "do not stand together"),
    ("fuse mixed", row_sum(4, 4), [Fuse(("i", "j"), "f")], "reduces over some of i, j only"),
    (
        "fuse parts",
        elementwise(4, 4),
        [Split("i", "a", (("b", 2),)), Fuse(("b", "j"), "f")],
        "not a whole range",
    ),
    ("twice", matmul(4, 4, 4), [Reorder(("i", "i"))], "named twice"),
    ("scatter order", scatter(), [grid("i")], "it must run in order"),
    ("scatter lanes", scatter(), [vector("i")], "it must run in order"),
    ("grid sum", full_sum(4, 4), [grid("i")], "use `cooperate i tasks`"),
    ("local", matmul(4, 4, 4), [local("i")], "no threads of a block; use grid"),
    ("unroll twice", matmul(4, 4, 4), [vector("j"), unroll("j")], "vector already"),
    ("unroll unknown", elementwise(VARIABLE), [unroll("i")], "runs n times, which is not known"),
    ("one lane", matmul(4, 1, 4), [vector("i"), vector("k")], "has lanes already: i"),
    (
        "outer lanes",
        matmul(8, 4, 4),
        [Split("i", "a", (("b", 2),)), vector("a")],
        "not the innermost part of its range",
    ),
    ("tail", matmul(4, 4, 4), [Tail("i", "cut")], "a tail is one of peel, mask, shift"),
    ("tail unknown", elementwise(VARIABLE), [Tail("i", "peel")], "only mask works"),
    ("shift sum", row_sum(4, 4), [Tail("j", "shift")], "add0 would take some points of j twice"),
    ("shift in place", elementwise(4), [Tail("i", "shift")], "may overwrite what it reads"),
    ("hint", elementwise(4), [Hint("store0", "fast")], "nontemporal, not 'fast'"),
    (
        "place",
        row_sum(4, 4),
        [Place("x", "root")],
        "no scratch buffer is called 'x'; there are add0",
    ),
    ("place task", row_sum(4, 4), [grid("i"), Place("add0", "root")], "each task of i has its own"),
    ("prefetch", row_sum(4, 4), [Prefetch("arg1", "add0", "i", 1)], "CPU has no prefetch"),
    ("hint sum", row_sum(4, 4), [Hint("add0", "nontemporal")], "does not simply store"),
    ("cooperate", row_sum(4, 4), [Cooperate("i")], "no statement reduces over i"),
    ("cooperate loop", row_sum(4, 4), [Cooperate("j")], "need it unrolled"),
    ("tasks", row_sum(4, 4), [CooperateTasks("j", "t")], "j is inside i"),
    ("stage", matmul(4, 4, 4), [Stage("arg7", "i", "B")], "nothing reads arg7"),
    ("stage at", matmul(4, 4, 4), [Stage("arg2", "q", "B")], "no leaf is called 'q'"),
    ("stage root", matmul(4, 4, 4), [Stage("arg2", "root", "B")], "lives in scope root"),
    ("stage layout", matmul(4, 4, 4), [Stage("arg2", "i", "B", layout=(0, 0))], "each of 2 axes"),
    ("stage shared", matmul(4, 4, 4), [Stage("arg2", "i", "B", "shared")], "no memory shared"),
    ("stage gpu", matmul(4, 4, 4), [Stage("arg2", "i", "B", depth=4)], "are not for CPU"),
    ("keep", matmul(4, 4, 4), [Keep("add0", "row")], "no later statement computes"),
    ("keep store", softmax(4, 4), [Keep("store0", "row")], "does not reduce one value"),
    ("detach", matmul(4, 4, 4), [Detach("add0", "k", "t")], "no loop around the results"),
    (
        "split staged",
        matmul(4, 8, 4),
        [Split("j", "jo", (("ji", 4),)), Stage("arg2", "jo", "B"), Split("jo", "jp", (("jq", 2),))],
        "has its place in jo already; split jo before",
    ),
    (
        "split detached",
        matmul(8, 4, 4),
        [
            Split("i", "io", (("ii", 4),)),
            Detach("add0", "io", "t"),
            Split("io", "ip", (("iq", 2),)),
        ],
        "is counted from io already; split io before",
    ),
    ("subtotal", matmul(4, 4, 4), [Subtotal("add0", "j")], "both inside and outside of j"),
    (
        "mma",
        matmul(4, 4, 4),
        [Mma("add0", ("i", "j", "k"))],
        "sums no products for which CPU has a matrix instruction",
    ),
    ("persist", matmul(4, 4, 4), [Persist(4)], "persist is for GPU targets"),
    ("snake", matmul(4, 4, 4), [Snake("i")], "i is loop, not unrolled"),
]


@pytest.mark.parametrize(
    ("root", "actions", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_refusals(root: Node, actions: list[object], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        apply(build(root, CPU), actions)


def test_a_leaf_that_a_prefetch_names_stays_whole() -> None:
    target = replace(CPU, intrinsics=frozenset({"prefetch"}))
    kernel = apply(build(row_sum(4, 4), target), [Prefetch("arg1", "add0", "i", 1)])
    with pytest.raises(ScheduleError, match="asks for arg1 ahead along i: prefetch afterwards"):
        Split("i", "io", (("ii", 2),))(kernel)


def test_tiles_of_an_uneven_range_are_walked_in_order() -> None:
    """The inner part outermost would run past the end of the range before the last tile."""
    actions = [Split("i", "io", (("ii", 4),)), grid("ii", "io")]
    check(row_sum(8, 4), actions)
    with pytest.raises(ScheduleError, match="its parts must cover exactly 10"):
        lower(apply(build(row_sum(10, 4), CPU), actions), "f")


def test_scratch_of_a_task_is_read_in_its_own_phase() -> None:
    """The panel's phase lies between the sum and what reads it, although their tasks are the
    same."""
    i, j = ranges(4, 8)
    x, y = buffer(1, 4, 8), buffer(2, 4)
    total = reduce("add", load(x, i, j), j)
    root = sink(store(buffer(0, 4), ops.ADD(total, load(y, i)), i))
    staged = [grid("i"), Stage("arg2", "root", "late", "root")]
    kernel = apply(build(root, CPU), staged)
    kinds = [statement.name for statement in kernel.statements]
    assert kinds == ["add0", "copy_late", "store0"]
    with pytest.raises(ScheduleError, match="store0 reads add0 in another phase"):
        lower(kernel, "f")


def test_a_kernel_that_would_read_too_early_is_refused() -> None:
    """The maxima of all rows are complete after the loop over rows: the sum cannot share it."""
    i, j = ranges(4, 4)
    x = load(buffer(1, 4, 4), i, j)
    greatest = reduce("max", x, i, j)
    root = sink(store(buffer(0), reduce("add", ops.SUB(x, greatest), i, j)))
    kernel = build(root, CPU)
    assert kernel.statements[0].order == ("i", "j")
    assert kernel.statements[1].order == ("i2", "j2")
    check(root)


def test_matrix_instructions_check_their_operands() -> None:
    root = matmul(128, 64, 32, dtype=bfloat16)
    tile = [Split("i", "iw", (("im", 64),)), Split("k", "ko", (("km", 16),)), local("iw")]
    kernel = apply(build(root, GPU), tile)
    with pytest.raises(ScheduleError, match="m = 64 and k = 16"):
        short = apply(build(root, GPU), [tile[0], Split("k", "ko", (("km", 8),))])
        Mma("add0", ("im", "j", "km"))(short)
    staged = apply(kernel, [Mma("add0", ("im", "j", "km"))])
    with pytest.raises(ScheduleError, match="both operands of mma are to be staged"):
        check_gpu(staged)
    with pytest.raises(ScheduleError, match="0 or 1 iterations"):
        Skew("add0", 2)(staged)
    with pytest.raises(ScheduleError, match="must be a bfloat16 or float16"):
        apply(build(matmul(128, 64, 32), GPU), [*tile, Mma("add0", ("im", "j", "km"))])


def test_phases_share_scratch_at_the_root_only() -> None:
    kernel = apply(build(softmax(4, 4), CPU), [])
    statements = list(kernel.statements)
    assert [s.name for s in statements] == ["max0", "add1", "store0"]
    split = apply(kernel, [Kind("grid", ("i",))])
    assert len(lower(split, "f")) == 1


def test_sums_over_columns_in_whole_rows() -> None:
    actions = [
        Split("i", "ig", (("im", 2), ("iv", 4))),
        Split("j", "jo", (("ju", 3),)),
        unroll("ju"),
        vector("iv"),
        grid("ig"),
        Reorder(("jo", "im")),
    ]
    for columns in (8, 13):
        root = column_sum(10, columns)
        got = check(root, [*actions, Tail("iv", "mask")])
        np.testing.assert_allclose(
            got.arrays[0], arrays_for(root, {})[1].sum(0), rtol=1e-5, atol=1e-5
        )


def test_an_elementwise_kernel_of_unknown_size() -> None:
    actions = [Split("i", "g", (("m", 2), ("u", 2), ("v", 4))), unroll("u"), vector("v"), grid("g")]
    for n in (0, 1, 4, 7, 16, 33, 64):
        check(elementwise(VARIABLE), actions, variables={"n": n})


def test_numbers_beside_indices() -> None:
    """A range used as a number goes through lanes, loops and tails."""
    i, j = ranges(3, 11)
    causal = ops.WHERE(index.le(j, i), load(buffer(1, 3, 11), i, j), number(0.0), dtype=float32)
    value = ops.ADD(causal, ops.CAST(index.add(index.mul(j, 2), i), dtype=float32))
    root = sink(store(buffer(0, 3, 11), value, i, j))
    check(root, [Split("j", "o", (("u", 2), ("v", 4))), unroll("u"), vector("v"), grid("i")])
