"""What the heuristic chooses for the kernels that networks are made of, and that it means the
same."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import (
    CPU,
    buffer,
    check,
    column_sum,
    convolution,
    elementwise,
    full_sum,
    load,
    matmul,
    ranges,
    reduce,
    row_sum,
    sink,
    softmax,
    store,
)

from treadle import config
from treadle.backend.base import Function, Target
from treadle.ir import index, ops
from treadle.ir.node import Node
from treadle.kernel import contraction, pipeline
from treadle.kernel import heuristic as heuristics
from treadle.kernel.actions import Split, apply
from treadle.kernel.build import build
from treadle.kernel.heuristic import heuristic
from treadle.kernel.kernel import Kernel, ScheduleError
from treadle.kernel.plan import Plan
from treadle.kernel.schedule_text import parse_actions, show_actions


def chosen(root: Node) -> list[str]:
    return show_actions(heuristic(build(root, CPU), CPU)).splitlines()


def test_contiguous_ranges_become_one_flat_loop() -> None:
    actions = chosen(elementwise(500, 300))
    assert actions[0] == "fuse i, j: ij"
    assert "vector ijv" in actions and "grid ijg" in actions


def test_a_broadcast_range_stays_apart() -> None:
    i, j = ranges(50, 30)
    value = ops.ADD(load(buffer(1, 50, 30), i, j), load(buffer(2, 30), j))
    assert not any(
        line.startswith("fuse") for line in chosen(sink(store(buffer(0, 50, 30), value, i, j)))
    )


def test_a_softmax_keeps_its_exponentials_and_has_rows_as_tasks() -> None:
    actions = chosen(softmax(512, 1024))
    assert "keep add1 as add1_row" in actions
    assert any(line.startswith("grid i") for line in actions)
    assert {"vector jv", "vector j2v", "vector j3v", "cooperate ju"} <= set(actions)


def test_a_column_sum_takes_whole_rows() -> None:
    actions = chosen(column_sum(4096, 4096))
    assert "reorder jo, im" in actions and "unroll ju, iu" in actions


def test_a_full_sum_is_cut_in_tasks() -> None:
    assert any(" tasks " in line for line in chosen(full_sum(1000, 1000)))


def test_small_kernels_are_one_task() -> None:
    for root in (elementwise(10, 20), row_sum(8, 9), matmul(4, 4, 4), softmax(3, 5)):
        assert not any(line.startswith("grid") for line in chosen(root))


def test_how_a_sum_is_cut_does_not_depend_on_threads() -> None:
    """Else a result would depend on the machine."""
    kernel = build(full_sum(3000, 3000), CPU)
    lists = {
        show_actions(heuristic(kernel, replace(CPU, threads=threads))) for threads in (1, 2, 8, 64)
    }
    assert len(lists) == 1


@pytest.mark.parametrize(
    ("left", "right", "lanes", "packed"),
    [
        (False, False, "jv", False),
        (True, False, "jv", False),
        (False, True, "jv", True),
        (True, True, "jv", True),
    ],
)
def test_products_are_tiled_along_their_columns(
    left: bool, right: bool, lanes: str, packed: bool
) -> None:
    actions = chosen(matmul(300, 200, 100, left, right))
    assert f"vector {lanes}" in actions
    assert any(line.startswith("stage arg2") for line in actions) == packed


def test_a_product_with_few_rows_runs_along_the_sum() -> None:
    assert "vector kv" in chosen(matmul(2, 300, 256, right=True))


NARROW = replace(CPU, cache_bytes=(1024, 2048, 32 << 20))  # where small matrices are large


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_a_few_vectors_read_a_large_matrix_once(rows: int) -> None:
    """Row by row where the rows lie along the sum, else several whole rows at a time."""
    along = chosen(matmul(rows, 3072, 768, right=True))
    assert {"grid jg", "vector kv", "cooperate ku"} <= set(along)
    across = chosen(matmul(rows, 3072, 768))
    assert {"vector jv", "reorder ko, jm"} <= set(across) or rows == 1
    for actions in (along, across):
        assert ("unroll i" in actions) == (rows > 1)
        assert not any(line.startswith(("stage", "prefetch")) for line in actions)


def test_more_vectors_get_tiles() -> None:
    assert "unroll i" not in chosen(matmul(5, 3072, 768, right=True))
    assert "unroll i" not in chosen(matmul(4, 256, 128, right=True))  # it stays in the cache


def test_a_vector_that_is_read_again_is_not_asked_for_ahead() -> None:
    i, j = ranges(4096, 4096)
    weight, x = load(buffer(1, 4096, 4096), i, j), load(buffer(2, 4096), j)
    product = sink(store(buffer(0, 4096), reduce("add", ops.MUL(weight, x), j), i))
    asking = replace(CPU, intrinsics=frozenset(("prefetch",)))
    for root, asks in ((product, False), (row_sum(4096, 4096), True)):
        text = show_actions(heuristic(build(root, asking), asking))
        assert ("prefetch" in text) == asks


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (75, 77), (130, 96)])
def test_a_vector_meets_several_rows_at_a_time_where_memory_wants_it(
    rows: int, columns: int
) -> None:
    i, j = ranges(rows, columns)
    weight, x = load(buffer(1, rows, columns), i, j), load(buffer(2, columns), j)
    root = sink(store(buffer(0, rows), reduce("add", ops.MUL(weight, x), j), i))
    target = replace(NARROW, streams=8, intrinsics=frozenset(("prefetch",)))
    actions = heuristic(build(root, target), target)
    lines = show_actions(actions).splitlines()
    assert {"grid ig", "unroll iu, ju", "prefetch arg1 in add0 along jo 8"} <= set(lines)
    check(root, actions, target=target)
    assert "unroll iu, ju" not in show_actions(heuristic(build(root, NARROW), NARROW))


def test_a_large_factor_is_packed() -> None:
    assert any(line.startswith("stage arg2 at jo") for line in chosen(matmul(512, 2048, 2048)))


def test_a_convolution_has_channels_in_lanes() -> None:
    actions = chosen(convolution(8, 32, 14, 64, 3, pad=1))
    assert "vector jv" in actions
    assert any(line.startswith("stage arg2 at root") for line in actions)
    assert any(line.startswith("stage arg1") for line in actions)
    assert any(line.startswith("detach add0") for line in actions)


def test_pixels_that_share_lines_make_tall_tiles() -> None:
    """Two vectors of a panel are read for 14 pixels, not four for 4."""
    actions = chosen(convolution(8, 32, 14, 64, 3, pad=1))
    assert {"split j: jo | ju(2) | jv(16)", "split l: lo | lu(14)"} <= set(actions)


@pytest.mark.parametrize(
    ("batch", "second", "rows"), [(8, 2 << 20, 28), (8, 1 << 20, 14), (1, 2 << 20, 7)]
)
def test_a_large_image_is_copied_in_bands(batch: int, second: int, rows: int) -> None:
    """As large as a quarter of the second cache and enough tasks allow, not row by row."""
    target = replace(CPU, cache_bytes=(48 << 10, second, 105 << 20), threads=2)
    root = convolution(batch, 64, 56, 64, 3, pad=1)
    actions = show_actions(heuristic(build(root, target), target)).splitlines()
    assert f"split k: kg | kr({rows})" in actions
    assert "stage arg1 at kg as patch" in actions


def test_panels_that_the_second_cache_does_not_hold_together_are_read_once_for_an_image() -> None:
    root = convolution(8, 256, 14, 256, 3, pad=1)
    for second, order in ((2 << 20, "reorder jo, k, lo"), (64 << 20, "reorder k, jo, lo")):
        target = replace(CPU, cache_bytes=(48 << 10, second, 105 << 20))
        actions = show_actions(heuristic(build(root, target), target)).splitlines()
        assert any(line.startswith(order) for line in actions)


def test_a_factor_that_never_changes_is_packed_once() -> None:
    """Nine results for each filter: worth packing 9 MiB of filters only if that is done once."""
    kernel = build(convolution(1, 512, 3, 512, 3, pad=1), CPU)
    now = show_actions(heuristics.schedule(kernel, CPU).actions).splitlines()
    kept = heuristics.schedule(kernel, CPU, unchanging=frozenset({2}))
    once = show_actions(kept.actions).splitlines()
    assert not any("as panel root" in line for line in now)
    assert not contraction._is_unchanging(kept, [])  # a factor that is computed reads nothing
    assert any(line.startswith("stage arg2 at root as panel root") for line in once)
    assert once == show_actions(parse_actions("\n".join(once))).splitlines()


def test_what_is_too_large_for_a_stack_lives_at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """out[i, j] = sum_k a[i, k] * max_l b[k, l]: the maxima are an array."""
    i, j, k, m = ranges(3, 4, 50, 6)
    inner = reduce("max", load(buffer(2, 50, 6), k, m), m)
    value = reduce("add", ops.MUL(load(buffer(1, 3, 50), i, k), inner), k)
    root = sink(store(buffer(0, 3, 4), value, i, j))
    assert not any(line.startswith("place") for line in chosen(root))
    monkeypatch.setattr(heuristics, "TASK_MEMORY", 128)
    actions = heuristic(build(root, CPU), CPU)
    assert "place max0 root" in show_actions(actions).splitlines()
    check(root, actions)


def test_a_task_that_needs_too_much_memory_is_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heuristics, "TASK_MEMORY", 64)
    root = softmax(120, 200)
    actions = heuristic(build(root, CPU), CPU)
    assert not any(line.startswith(("grid", "keep")) for line in show_actions(actions).splitlines())
    check(root, actions)


def test_a_long_sum_is_packed_in_blocks() -> None:
    narrow = replace(CPU, cache_bytes=(32768, 1 << 17, 32 << 20))
    text = show_actions(heuristic(build(matmul(100, 700, 2100), narrow), narrow))
    lines = text.splitlines()
    assert "split k: kb | ki(700)" in lines
    assert "subtotal add0 at io" in lines and "stage arg2 at kb as panel" in lines
    check(matmul(13, 70, 21), parse_actions(text.replace("ki(700)", "ki(6)")))


TWO = replace(CPU, products=2)  # multiply-adds in a cycle


@pytest.mark.parametrize("target", [NARROW, replace(NARROW, products=2)])
def test_rows_that_push_each_other_out_of_the_cache_are_packed(target: Target) -> None:
    for size in (40, 64):  # whole tiles of rows, and a rest
        root = matmul(size, 130, 70, left=True)
        lines = show_actions(heuristic(build(root, target), target)).splitlines()
        assert any(line.startswith("stage arg1 at root as rows root block") for line in lines)
        check(root, parse_actions("\n".join(lines)))
    straight = heuristic(build(matmul(64, 130, 70), target), target)
    assert "as rows" not in show_actions(straight)


def test_a_task_packs_its_own_rows_if_it_reads_the_other_factor_in_place() -> None:
    target = replace(NARROW, cache_bytes=(1024, 1 << 20, 32 << 20))
    for size in (64, 75):  # whole tiles of rows, and a rest
        root = matmul(size, 100, 66, left=True)
        lines = show_actions(heuristic(build(root, target), target)).splitlines()
        assert "grid ig" in lines
        assert any(line.startswith("stage arg1 at ig as rows block") for line in lines)
        check(root, parse_actions("\n".join(lines)))


def test_tasks_are_finer_where_none_copies_what_others_do() -> None:
    """The rows of a product of 256 in blocks of so many tiles, beside four panels."""
    straight, turned = (chosen(matmul(256, 256, 256, right=right)) for right in (False, True))
    assert "split i: ig | io(8) | iu(4)" in straight
    assert "split i: ig | io(32) | iu(4)" in turned


def test_a_core_that_starts_two_products_takes_tiles_that_leave_little_to_hide() -> None:
    """Though a rest of 4 rows is code of its own."""
    for target, rows in ((CPU, 4), (TWO, 6)):
        lines = show_actions(heuristic(build(matmul(256, 256, 256), target), target)).splitlines()
        assert any(line.endswith(f"iu({rows})") for line in lines)


@pytest.mark.parametrize("columns", [130, 16])  # either factor may be the one in lanes
def test_so_are_those_of_a_batch_beside_a_factor_of_each_step(columns: int) -> None:
    b, i, j, s = ranges(2, 64, columns, 70)
    scaled = ops.MUL(load(buffer(1, 2, 70, 64), b, s, i), load(buffer(2, 2, 70), b, s))
    product = ops.MUL(scaled, load(buffer(3, 2, 70, columns), b, s, j))
    root = sink(store(buffer(0, 2, 64, columns), reduce("add", product, s), b, i, j))
    actions = heuristic(build(root, NARROW), NARROW)
    lines = show_actions(actions).splitlines()
    assert any(" at root as rows root block" in line for line in lines) == (columns == 130)
    check(root, actions)


def test_rows_that_stay_in_the_cache_are_read_in_place() -> None:
    kept, pushed = (show_actions(heuristic(build(matmul(256, 256, k, left=True), TWO), TWO))
                    for k in (8, 256))  # fmt: skip
    assert "as rows" not in kept and "as rows" in pushed


def test_a_short_sum_with_many_results_has_rows_as_tasks() -> None:
    root = matmul(70, 90, 20)
    lines = show_actions(heuristic(build(root, NARROW), NARROW)).splitlines()
    assert "grid ig" in lines and any(line.startswith("stage arg2 at root") for line in lines)
    check(root, parse_actions("\n".join(lines)))


@pytest.mark.parametrize(("terms", "turned"), [(32, True), (36, True), (35, False)])
def test_a_factor_across_its_rows_is_packed_by_squares(terms: int, turned: bool) -> None:
    """Where the sum is no multiple of a square, its numbers are picked up one by one."""
    root = matmul(40, 50, terms, right=True)
    target = replace(CPU, intrinsics=CPU.intrinsics | {"shuffle"})
    lines = show_actions(heuristic(build(root, target), target)).splitlines()
    assert any(line.startswith("stage arg2") for line in lines)
    assert ("transpose copy_panel: panel0v, panel1v" in lines) is turned
    check(root, parse_actions("\n".join(lines)), target=target)


def test_several_panels_of_a_long_sum_are_packed_at_a_time() -> None:
    narrow = replace(TWO, cache_bytes=(32768, 1 << 17, 32 << 20))
    text = show_actions(heuristic(build(matmul(60, 700, 2176), narrow), narrow))
    lines = text.splitlines()
    assert "split k: kb | ki(128)" in lines and "reorder kb, jo, io, ki" in lines
    assert "stage arg2 at kb as panel" in lines and "grid jg" in lines
    check(matmul(13, 470, 21), parse_actions(text.replace("ki(128)", "ki(6)")))


def test_so_are_those_whose_pieces_lie_in_a_page_each() -> None:
    narrow = replace(TWO, cache_bytes=(32768, 1 << 17, 32 << 20))
    for rows, columns, together in ((48, 1100, True), (48, 700, False), (200, 1100, False)):
        text = show_actions(heuristic(build(matmul(rows, columns, 640), narrow), narrow))
        assert ("split k: kb | ki(128)" in text.splitlines()) is together
        if together:
            check(matmul(13, 470, 21), parse_actions(text.replace("ki(128)", "ki(6)")))


def test_lists_print_and_parse_back() -> None:
    for root in (softmax(64, 64), matmul(64, 64, 64), convolution(2, 8, 9, 16, 3, pad=1)):
        actions = heuristic(build(root, CPU), CPU)
        assert parse_actions(show_actions(actions)) == actions


# ---- meaning -------------------------------------------------------------------------------------
SIZES = st.integers(1, 70)


@settings(deadline=None, max_examples=25)
@given(SIZES, SIZES, st.integers(1, 20), st.booleans(), st.booleans())
def test_products(n: int, m: int, k: int, left: bool, right: bool) -> None:
    root = matmul(n, m, k, left, right)
    check(root, heuristic(build(root, CPU), CPU))


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 4), st.integers(8, 200), st.integers(8, 90), st.booleans(), st.booleans())
def test_a_few_vectors(n: int, m: int, k: int, left: bool, right: bool) -> None:
    root = matmul(n, m, k, left, right)
    check(root, heuristic(build(root, NARROW), NARROW))


@settings(deadline=None, max_examples=15)
@given(
    st.integers(1, 3), st.integers(1, 4), st.integers(3, 9), st.integers(1, 20),
    st.integers(1, 3), st.integers(0, 1), st.integers(1, 2),
)  # fmt: skip
def test_convolutions(
    batch: int, channels: int, side: int, outputs: int, width: int, pad: int, stride: int
) -> None:
    root = convolution(batch, channels, side, outputs, width, pad, stride)
    check(root, heuristic(build(root, CPU), CPU))


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([softmax, column_sum, row_sum, full_sum, elementwise]),
    st.integers(1, 300),
    st.integers(1, 80),
)
def test_loops_over_memory(make: object, rows: int, columns: int) -> None:
    root = make(rows, columns)
    check(root, heuristic(build(root, CPU), CPU), tolerance=1e-3)


@pytest.mark.parametrize("size", [0, 1, 17, 64])
def test_unknown_sizes(size: int) -> None:
    n = index.variable("n", 0, 4096)
    for make in (softmax, column_sum, row_sum, full_sum, elementwise):
        root = make(n, 20)
        check(root, heuristic(build(root, CPU), CPU), variables={"n": size}, tolerance=1e-3)
        root = make(20, n)
        check(root, heuristic(build(root, CPU), CPU), variables={"n": size}, tolerance=1e-3)
    root = matmul(n, 20, 7)
    check(root, heuristic(build(root, CPU), CPU), variables={"n": size})


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_row_expressions(data: st.DataObject) -> None:
    """Three reductions of a row, each of an expression of the ones before, and a store."""
    rows, columns = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    i, j = ranges(rows, columns)
    x = load(buffer(1, rows, columns), i, j)
    pieces = [x, ops.MUL(x, x)]
    for _ in range(3):
        monoid = data.draw(st.sampled_from(["add", "max", "min"]))
        left, right = (data.draw(st.sampled_from(pieces)) for _ in range(2))
        value = data.draw(st.sampled_from([ops.SUB, ops.MAX, ops.ADD]))(left, right)
        pieces.append(reduce(monoid, value, j) if value.free & j.free else value)
    root = sink(store(buffer(0, rows, columns), ops.ADD(pieces[-1], pieces[-2]), i, j))
    check(root, heuristic(build(root, CPU), CPU), tolerance=1e-2)


def test_the_pipeline_names_scratch_and_chunks() -> None:
    lowered = pipeline.lower(full_sum(1000, 1000), CPU, "total")
    assert [f.name for f in lowered.functions] == ["total_0", "total_1"]
    (partial,) = lowered.scratch
    assert partial == 4 * lowered.functions[0].tasks
    assert lowered.chunks == (0, 1)
    own = {p.arg[0] for f in lowered.functions for p in f.params if p.op is ops.ARG}
    assert own == {0, 1, 2}
    applied = apply(build(full_sum(1000, 1000), CPU), lowered.actions)
    assert str(applied) == str(lowered.kernel)


# ---- lists that do not do ------------------------------------------------------------------------
def test_a_refused_list_of_the_heuristic_gives_way_to_plain_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is wrong with what the heuristic chose, the user gets the kernel."""
    root = matmul(40, 70, 30)

    def wrong(plan: Plan) -> None:
        plan.do(Split("i", "io", (("iu", 4),)))
        plan.do(Split("i", "ib", (("ia", 4),)))

    monkeypatch.setattr(pipeline, "WAYS", (wrong, *heuristics.WAYS[1:]))
    with config.VERIFY.set(1), pytest.raises(ScheduleError, match="no leaf is called 'i'"):
        pipeline.lower(root, CPU, "product")
    with config.VERIFY.set(0):
        lowered = pipeline.lower(root, CPU, "product")
    assert "vector" in show_actions(lowered.actions)
    assert "by plain loops" in lowered.origin and "no leaf is called 'i'" in lowered.origin
    check(root, lowered.actions)


def test_a_list_that_lowering_refuses_gives_way_to_the_loops_as_they_were_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lower = pipeline.PASSES[-1]

    def strict(kernel: Kernel, context: pipeline.Context) -> tuple[Function, ...]:
        if any(leaf.kind != "loop" for leaf in kernel.leaves.values()):
            raise ScheduleError("there are only loops here")
        return lower.how(kernel, context)

    passes = (*pipeline.PASSES[:-1], lower._replace(how=strict))
    monkeypatch.setattr(pipeline, "PASSES", passes)
    with config.VERIFY.set(0):
        lowered = pipeline.lower(matmul(40, 70, 30), CPU, "product")
        with pytest.raises(ScheduleError, match="only loops"):
            pipeline.lower(matmul(40, 70, 30), CPU, "product", "split j: jo | ju(2)\nunroll ju")
    assert lowered.actions == () and "only loops" in lowered.origin


def test_factors_that_are_read_backwards() -> None:
    """Packed rows whose blocks do not end where the memory does, and parts of a fused range."""
    i, j, c = ranges(24, 40, 12)
    back = ops.MUL(load(buffer(1, 24, 12), i, c), load(buffer(2, 12, 40), c, index.sub(39, j)))
    root = sink(store(buffer(0, 24, 40), reduce("add", back, c), i, j))
    b, i, j, c = ranges(3, 64, 8, 40)
    back = ops.MUL(load(buffer(2, 3, 40, 64), b, c, i), load(buffer(3, 40, 8), c, index.sub(7, j)))
    total = reduce("add", back, c)
    twice = sink(
        store(buffer(0, 3, 64, 8), total, b, i, j), store(buffer(1, 3, 64, 8), total, b, i, j)
    )
    for kernel in (root, twice):
        check(kernel, heuristic(build(kernel, CPU), CPU), tolerance=1e-3)


def test_a_panel_whose_innermost_axis_has_one_element() -> None:
    root = convolution(2, 2, 7, 16, 1, 0, 2)
    check(root, heuristic(build(root, CPU), CPU))
