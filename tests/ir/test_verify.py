"""The law of each stage: right programs pass, each fault is named with its neighbourhood."""

from dataclasses import dataclass, replace

import pytest

from treadle.ir import dtype as d
from treadle.ir import index, law, ops, text
from treadle.ir.dtype import bool_, float32, int64, void
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node
from treadle.ir.verify import LawError, verify

T = index.variable("T", 1, 64)
I_, J_ = index.range_(0, 4), index.range_(1, 8)
X = Node(ops.PLACEHOLDER, float32, (), (0, (4, 8)))
ROW = Node(ops.PLACEHOLDER, float32, (), (1, (8,)))
IDS = Node(ops.PLACEHOLDER, int64, (), (2, (4, 1)))
FLAG = ops.LT(X, X)
A = Node(ops.ARG, float32, (), (0, (4, 8)))
B = Node(ops.ARG, float32, (), (1, (4,)))
LOAD = Node(ops.LOAD, float32, (A, I_, J_), 2)
SUM = Node(ops.KREDUCE, float32, (LOAD, J_), ("add", 1))
STORE = Node(ops.STORE, void, (B, SUM, I_), (1, None))
SCALAR = Node(ops.SCALAR, float32, (), 0)
ZERO, FOUR = index.const(0), index.const(4)


def graph(op, *src, arg=None, dtype=float32):
    return Node(op, dtype, src, arg)


def fault(node, stage):
    with pytest.raises(LawError) as error:
        verify(node, stage)
    return str(error.value)


# ---- graphs --------------------------------------------------------------------------------------
BODY = graph(ops.SINK, ops.ADD(Node(ops.PLACEHOLDER, float32, (), (0, (8,))), ROW), dtype=void)
HALF = graph(ops.SHRINK, X, arg=((0, 2), (0, 8)))
EMPTY = Node(ops.PLACEHOLDER, float32, (), (0, (0,)))

RIGHT_GRAPHS = {
    "alu": ops.ADD(X, ops.WHERE(FLAG, X, X, dtype=float32)),
    "reduce": graph(ops.REDUCE, X, arg=("add", (0, 1))),
    "argmax": graph(ops.REDUCE, X, X, arg=("argmax", (1,)), dtype=(float32, float32)),
    "gather": graph(ops.GATHER, X, IDS, arg=1),
    "scatter": graph(ops.SCATTER, X, IDS, graph(ops.GATHER, X, IDS, arg=1), arg=(1, "add")),
    "update": graph(ops.UPDATE, X, HALF, arg=((1, 2), (0, 1))),
    "reshape": graph(ops.RESHAPE, X, arg=(2, 16)),
    "symbolic": graph(
        ops.RESHAPE, Node(ops.PLACEHOLDER, float32, (), (0, (T, 8))), arg=(index.mul(T, 8),)
    ),
    "window": graph(
        ops.WINDOW,
        graph(ops.EXPAND, Node(ops.PLACEHOLDER, float32, (), (0, (8, 1))), arg=(8, 3)),
        arg=(0, 6, 1, 1),
    ),
    "scan": graph(
        ops.SCAN, ROW, Node(ops.PLACEHOLDER, float32, (), (3, (5, 8))),
        arg=(BODY, 1, 1, 5, False), dtype=(float32,),
    ),
    "roots": graph(ops.SINK, X, FLAG, dtype=void),
    "nothing": graph(ops.REDUCE, EMPTY, arg=("max", (0,))),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT_GRAPHS)
def test_right_graphs(name):
    verify(RIGHT_GRAPHS[name], "graph")


WRONG_GRAPHS = [
    (Node(ops.ADD, float32, (X,)), "it needs 2 sources and has 1"),
    (Node(ops.ADD, float32, (X, ROW)), "different shapes, (4, 8) and (8,)"),
    (Node(ops.ADD, float32, (X, ops.CAST(X, dtype=d.float64))), "dtypes, float32 and float64"),
    (Node(ops.ADD, d.float64, (X, X)), "its dtype is float64, but it gives float32"),
    (Node(ops.LT, float32, (X, X)), "its dtype is float32, but it gives bool"),
    (ops.SIN(IDS), "it does not accept int64"),
    (ops.WHERE(X, X, X, dtype=float32), "its condition is float32, not bool"),
    (ops.ADD(T, T), "arithmetic on indices is made by index.py"),
    (LOAD, "it may not stand in this stage"),
    (graph(ops.CONST, arg=1 << 40), "are no bits of float32"),
    (graph(ops.CONST, arg=-1, dtype=d.uint8), "-1 are no bits of uint8"),
    (graph(ops.CONST, arg=2, dtype=bool_), "2 are no bits of bool"),
    (graph(ops.CONST, arg=None), "its bits are None, not an int"),
    (graph(ops.BITCAST, X, dtype=d.int64), "float32 and int64 differ in width"),
    (graph(ops.PLACEHOLDER, arg=(0, (4, -1))), "its arg is not (number, shape)"),
    (graph(ops.PLACEHOLDER, arg=(0, (FOUR,))), "its arg is not (number, shape)"),
    (graph(ops.RESHAPE, X, arg=(5, 7)), "32 elements become 35"),
    (graph(ops.PERMUTE, X, arg=(0, 0)), "its arg is not an order of the axes"),
    (graph(ops.EXPAND, X, arg=(5, 8)), "only axes of size 1 can be expanded"),
    (graph(ops.PAD, X, arg=((0, -1), (0, 0))), "its arg is not a pair (low, high) per axis"),
    (graph(ops.SHRINK, X, arg=((0, 9), (0, 8))), "its region leaves the shape (4, 8)"),
    (graph(ops.FLIP, X, arg=(1, 0)), "its arg is not a tuple of axes"),
    (graph(ops.WINDOW, X, arg=(0, 4, 1, 1)), "its windows leave the axis of size 4"),
    (graph(ops.WINDOW, X, arg=(0, 1, 0, 1)), "its stride is not a positive int"),
    (graph(ops.REDUCE, X, arg=("add", (1, 0))), "its arg is not (monoid, axes in order)"),
    (graph(ops.REDUCE, X, arg=("plus", (1,))), "there is no monoid 'plus'"),
    (graph(ops.REDUCE, X, arg=("argmax", (1,))), "the state of argmax has 2 parts, and it gets 1"),
    (graph(ops.GATHER, X, X, arg=1), "its index is float32, not an integer"),
    (graph(ops.GATHER, X, IDS, arg=0), "along axis 0, shapes (4, 8) and (4, 1) do not fit"),
    (graph(ops.OUT, X, arg=0), "it picks one of several outputs"),
]


@pytest.mark.parametrize(("node", "message"), WRONG_GRAPHS, ids=[m[:40] for _, m in WRONG_GRAPHS])
def test_wrong_graphs(node, message):
    assert message in fault(node, "graph")


def test_the_neighbourhood_is_shown():
    wrong = Node(ops.ADD, float32, (ops.EXP(X), ops.SIN(ROW)))
    message = fault(ops.NEG(ops.COS(wrong)), "graph")
    assert (
        message
        == """\
add breaks the law of the graph stage: its sources have different shapes, (4, 8) and (8,)
  %0 = placeholder float32 : (0, (4, 8))
  %1 = exp float32 %0
  %2 = placeholder float32 : (1, (8,))
  %3 = sin float32 %2
  %4 = add float32 %1, %3    <-- here
  %5 = cos float32 %4"""
    )


def test_a_scan_whose_body_does_not_fit():
    short = graph(ops.SCAN, ROW, arg=(BODY, 1, 0, 5, False), dtype=(float32,))
    assert "reads placeholder 1 of shape (8,), which it does not get" in fault(short, "graph")
    steps = Node(ops.PLACEHOLDER, float32, (), (3, (4, 8)))
    uneven = graph(ops.SCAN, ROW, steps, arg=(BODY, 1, 1, 5, False), dtype=(float32,))
    assert "sequence 0 does not have 5 steps" in fault(uneven, "graph")
    grown = graph(ops.SINK, X, dtype=void)
    changing = graph(ops.SCAN, ROW, arg=(grown, 1, 0, 5, False), dtype=(float32,))
    assert "carry 0 changes from step to step" in fault(changing, "graph")


def test_faults_inside_bodies_are_found():
    body = graph(ops.SINK, Node(ops.ADD, float32, (ROW, X)), dtype=void)
    scan = graph(ops.SCAN, ROW, arg=(body, 1, 0, 5, False), dtype=(float32,))
    assert fault(scan, "graph").startswith("add breaks the law")


def test_what_is_verified_is_not_visited_again(monkeypatch):
    deep = Node(ops.PLACEHOLDER, float32, (), (91, (4,)))
    for _ in range(3000):
        deep = ops.SIN(deep)
    verify(deep, "graph")
    seen = []
    monkeypatch.setitem(law.LAWS, ops.SIN, lambda n: seen.append(n))
    verify(ops.EXP(ops.SIN(deep)), "graph")
    assert len(seen) == 1


# ---- kernels -------------------------------------------------------------------------------------
def kernel(*stores):
    return Node(ops.SINK, void, stores)


def test_right_kernels():
    verify(kernel(STORE), "kernel")
    guarded = Node(ops.LOAD, float32, (A, I_, index.sub(J_, 1), index.le(1, J_)), 2)
    verify(kernel(Node(ops.STORE, void, (A, guarded, I_, J_), (2, None))), "kernel")
    where = Node(ops.CAST, INDEX, (Node(ops.CAST, int64, (LOAD,)),))
    checked = Node(ops.CHECK, INDEX, (where, FOUR), 0)
    verify(kernel(Node(ops.STORE, void, (B, LOAD, checked), (1, "add"))), "kernel")
    t_range = index.range_(2, T)
    rows = Node(ops.ARG, float32, (), (0, (T,)))
    load = Node(ops.LOAD, float32, (rows, t_range), 1)
    verify(kernel(Node(ops.STORE, void, (rows, load, t_range), (1, None))), "kernel")


WRONG_KERNELS = [
    (kernel(Node(ops.STORE, void, (B, LOAD, I_), (1, None))), "depends on ranges [1] that"),
    (kernel(Node(ops.STORE, void, (B, SUM), (1, None))), "it has 0 sources for 1 indices"),
    (kernel(Node(ops.STORE, void, (A, SUM, I_), (1, None))), "1 indices for a buffer of 2 axes"),
    (kernel(Node(ops.STORE, void, (B, SUM, I_), (1, "plus"))), "there is no monoid 'plus'"),
    (kernel(Node(ops.STORE, void, (B, ops.EQ(SUM, SUM), I_), (1, None))), "it stores bool in a"),
    (kernel(STORE, SUM), "a kernel's sink has stores only"),
    (Node(ops.LOAD, float32, (A, I_), 2), "it has 1 sources for 2 indices and a guard"),
    (Node(ops.LOAD, float32, (A, I_, J_, I_), 2), "its guard is index, not bool"),
    (Node(ops.LOAD, float32, (A, I_, SUM), 2), "an index is not of dtype index"),
    (Node(ops.LOAD, float32, (SUM, I_), 1), "it accesses kreduce, which is no buffer"),
    (Node(ops.LOAD, d.float64, (A, I_, J_), 2), "it loads float64 from a buffer of float32"),
    (Node(ops.KREDUCE, float32, (LOAD, I_, FOUR), ("add", 1)), "over something that is no range"),
    (Node(ops.KREDUCE, float32, (LOAD,), ("add", 1)), "or it has no range"),
    (Node(ops.KREDUCE, float32, (LOAD, J_), ("argmax", 1)), "has 2 parts, and it gets 1"),
    (Node(ops.ISUM, INDEX, (J_, I_), (0, (1, 1))), "it is not canonical"),
    (Node(ops.ISUM, INDEX, (I_,), (0, (0,))), "it does not have one factor, not 0"),
    (Node(ops.IPROD, INDEX, (I_, FOUR)), "a factor of it is a sum, a product or a constant"),
    (Node(ops.STORE, void, (B, SUM, I_), None), "not of the form that its row in the table says"),
    (X, "it may not stand in this stage"),
]


@pytest.mark.parametrize(("node", "message"), WRONG_KERNELS, ids=[m[:40] for _, m in WRONG_KERNELS])
def test_wrong_kernels(node, message):
    assert message in fault(node, "kernel")


# ---- programs ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Function:
    """As `backend.base.Function`."""

    name: str
    params: tuple
    body: tuple
    tasks: object = 1
    block: tuple = ()


LOOP = Node(ops.LOOP, INDEX, (ZERO, FOUR), (0, 1))
END = Node(ops.END, void, (LOOP,))
READ = Node(ops.READ, float32, (A, LOOP))
SCALED = ops.MUL(READ, SCALAR)
WRITE = Node(ops.WRITE, void, (B, LOOP, SCALED))
SCALE = Function("scale", (A, B, SCALAR), (LOOP, READ, SCALED, WRITE, END))
WIDE = Node(ops.READ, float32.vec(4), (A, ZERO))
MASK = ops.LT(WIDE, WIDE)


def body(*nodes):
    return replace(SCALE, body=nodes)


def test_right_programs():
    verify(SCALE, "program")
    verify(body(*SCALE.body, *SCALE.body), "program")
    scratch = Node(ops.DEFINE, float32, (), ("rows", 16, "thread"))
    verify(
        body(
            scratch,
            WIDE,
            MASK,
            Node(ops.WRITE, void, (scratch, ZERO, WIDE, MASK)),
            ops.ADD(WIDE, Node(ops.SPLAT, float32.vec(4), (SCALAR,))).src[1],
            Node(ops.LANE, float32, (WIDE,), 3),
            Node(ops.FLAG, void, (MASK,), 0),
        ),
        "program",
    )


def wide(op, *src, dtype, arg=None):
    return body(WIDE, Node(op, dtype, src, arg))


IF = Node(ops.IF, void, (ops.LT(SCALAR, SCALAR),))
WRONG_PROGRAMS = [
    (body(LOOP, READ, SCALED), "loop breaks the law of the program stage: it is never closed"),
    (body(LOOP, READ, END, SCALED), "its source read is not visible here"),
    (body(READ), "its source loop is not visible here"),
    (body(END), "it does not close the innermost open loop or if"),
    (body(ops.LT(SCALAR, SCALAR), LOOP, IF, END), "it does not close the innermost open"),
    (body(LOOP, LOOP), "it is open already"),
    (replace(SCALE, params=(A, B)), "its source scalar is not visible here"),
    (replace(SCALE, params=(A, B, ZERO)), "it is no parameter"),
    (body(LOAD), "its source range is not visible here"),
    (body(SUM), "it may not stand in this stage"),
    (wide(ops.ADD, WIDE, SCALAR, dtype=float32.vec(4)), "dtypes, float32x4 and float32"),
    (wide(ops.LANE, WIDE, dtype=float32, arg=4), "it takes lane 4 of float32x4 as float32"),
    (wide(ops.SPLAT, WIDE, dtype=float32.vec(8)), "it spreads float32x4 over float32x8"),
    (wide(ops.PACK, SCALAR, SCALAR, dtype=float32.vec(4)), "it packs 2 values into float32x4"),
    (
        wide(ops.WRITE, B, ZERO, WIDE, ops.LT(SCALAR, SCALAR), dtype=void),
        "mask is bool, not boolx4",
    ),
    (wide(ops.READ, B, ZERO, dtype=d.float64), "it accesses a buffer of float32 as float64"),
    (wide(ops.READ, B, SCALAR, dtype=float32), "its offset is float32, not one integer"),
    (wide(ops.DEFINE, dtype=float32, arg=("a", 4, "heap")), "(name, size, thread or shared)"),
    (wide(ops.SPECIAL, dtype=INDEX, arg=("lane", 0, 4)), "its arg is not (task or thread"),
]


@pytest.mark.parametrize(
    ("function", "message"), WRONG_PROGRAMS, ids=[m[:40] for _, m in WRONG_PROGRAMS]
)
def test_wrong_programs(function, message):
    assert message in fault(function, "program")


def test_a_fault_in_a_program_shows_the_lines_around():
    message = fault(body(LOOP, READ, END, SCALED), "program")
    assert message.startswith("scale, step 3: mul breaks the law of the program stage")
    assert "<-- here" in message
    assert "read float32" in message


def test_what_is_no_program_of_a_stage():
    with pytest.raises(ValueError, match="there is no stage 'tree'; there are graph, kernel"):
        verify(X, "tree")
    with pytest.raises(TypeError, match="verified as a Function"):
        verify(X, "program")
    with pytest.raises(TypeError, match="a Function is of the program stage"):
        verify(SCALE, "graph")


def test_a_text_that_parses_may_still_break_the_law():
    node = text.parse("%0 = placeholder float32 : (0, (4,))\n%1 = add float32 %0\n")
    assert "it needs 2 sources and has 1" in fault(node, "graph")


def test_every_law_belongs_to_a_row():
    assert set(law.LAWS) <= set(ops.TABLE.values())
    shapeless = {"alu", "movement", "reduce", "memory", "index"}
    for op in ops.TABLE.values():
        needs_law = op.kind in shapeless - {"alu"} and op not in (
            ops.CONTIGUOUS,
            ops.COPY,
            ops.LANES,
        )
        assert not needs_law or op in law.LAWS, f"{op.name} has no law"
