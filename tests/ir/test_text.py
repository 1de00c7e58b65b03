"""Text: what is printed parses back to the same nodes, at every stage."""

import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.ir import dtype as d
from treadle.ir import index, ops
from treadle.ir.dtype import bool_, float32, int64, void
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node
from treadle.ir.text import parse, parse_function, parse_roots, show, show_function


@dataclass(frozen=True)
class Function:
    """As `backend.base.Function`."""

    name: str
    params: tuple
    body: tuple
    tasks: object = 1
    block: tuple = ()


def placeholder(number=0, shape=(4, 8), dtype=float32):
    return Node(ops.PLACEHOLDER, dtype, (), (number, shape))


def test_a_graph_reads_well():
    x = placeholder()
    half = Node(ops.CONST, float32, (), float32.to_bits(0.5))
    scaled = ops.MUL(x, Node(ops.EXPAND, float32, (half,), (4, 8)))
    total = Node(ops.REDUCE, float32, (scaled,), ("add", (1,)))
    text = """\
%0 = placeholder float32 : (0, (4, 8))
%1 = const float32 0.5
%2 = expand float32 %1 : (4, 8)
%3 = mul float32 %0, %2
%4 = reduce float32 %3 : ("add", (1,))
"""
    assert show(total) == text
    assert parse(text) is total
    assert parse(f"# a comment\n\n  {text}") is total


def test_several_roots():
    x = placeholder()
    roots = [ops.EXP(x), x, ops.EXP(x)]
    assert show(roots).endswith("roots %1, %0, %1\n")
    assert parse_roots(show(roots)) == tuple(roots)
    assert parse_roots(show([])) == ()
    assert parse_roots(show(x)) == (x,)
    with pytest.raises(ValueError, match="the text has 3 roots, not one"):
        parse(show(roots))


def test_symbolic_shapes_several_outputs_and_bodies():
    t = index.variable("T", 1, 64)
    x = placeholder(0, (t, index.dim(index.mul(t, 2))))
    positions = Node(ops.IOTA, int64, (), t)
    body = Node(ops.SINK, void, (ops.ADD(placeholder(0, (3,)), placeholder(1, (3,))),))
    rows = Node(ops.PLACEHOLDER, float32, (), (1, (t, 3)))
    scan = Node(ops.SCAN, (float32,), (placeholder(2, (3,)), rows), (body, 1, 1, t, True))
    pair = Node(ops.REDUCE, (float32, int64), (x, x), ("argmax", (0,)))
    best = Node(ops.OUT, int64, (pair,), 1)
    roots = (x, positions, scan, Node(ops.OUT, float32, (scan,), 0), best)
    text = show(roots)
    assert '%0 = variable index : ("T", 1, 64)' in text
    assert "reduce (float32, int64)" in text
    assert "scan (float32,)" in text
    assert parse_roots(text) == roots


def test_a_kernel():
    t = index.variable("T", 1, 64)
    i, j = index.range_(0, t), index.range_(1, 8)
    x = Node(ops.ARG, float32, (), (0, (t, 8)))
    y = Node(ops.ARG, float32, (), (1, (t,)))
    guard = index.both(index.lt(i, 5), index.le(1, j))
    load = Node(ops.LOAD, float32, (x, i, index.sub(j, 1), guard), 2)
    total = Node(ops.KREDUCE, float32, (load, j), ("add", 1))
    position = index.floordiv(index.add(i, index.mod(t, 3)), 2)
    store = Node(ops.STORE, void, (y, total, position), (1, None))
    sink = Node(ops.SINK, void, (store,))
    assert parse(show(sink)) is sink
    assert "isum index" in show(sink)


def constants():
    integers = st.sampled_from([t for t in d.TENSOR_DTYPES if not t.is_float] + [INDEX])
    any_int = st.tuples(integers, st.integers(-(1 << 64), 1 << 64))
    floats = st.sampled_from([t for t in d.TENSOR_DTYPES if t.is_float])
    any_bits = st.tuples(floats, st.integers(0, (1 << 64) - 1)).map(
        lambda p: (p[0], p[1] & ((1 << p[0].bits) - 1))
    )
    any_float = st.tuples(floats, st.floats()).map(lambda p: (p[0], p[0].to_bits(p[1])))
    return any_int.map(lambda p: (p[0], p[0].to_bits(p[1]))) | any_bits | any_float


@settings(deadline=None, max_examples=500)
@given(constants())
def test_constants_come_back_to_the_bit(constant):
    dtype, bits = constant
    node = Node(ops.CONST, dtype, (), bits)
    assert parse(show(node)) is node


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        (float32, 0.1, "0.1"),
        (float32, -0.0, "-0.0"),
        (float32, math.nan, "nan"),
        (float32, -math.inf, "-inf"),
        (float32, 1e-45, "1e-45"),
        (float32, 1.0, "1.0"),
        (d.bfloat16, 0.1, "0.1"),
        (d.float16, 65504.0, "65504.0"),
        (d.float64, 1 / 3, "0.3333333333333333"),
        (bool_, True, "True"),
        (d.uint64, 2**64 - 1, "18446744073709551615"),
        (float32.vec(8), 1.5, "1.5"),
    ],
)
def test_constants_print_as_values(dtype, value, text):
    node = Node(ops.CONST, dtype, (), dtype.to_bits(value))
    assert show(node) == f"%0 = const {dtype} {text}\n"


@pytest.mark.parametrize(
    "arg",
    [
        None, 0, -3, True, 1.5, math.inf, "plain", 'a "quoted" \\ back\nslash', "it's", (), (1,),
        (1, (2, ("x", None))), (float32, float32.vec(4)), ("%1 = add", "# : (",),
    ],
    ids=repr,
)  # fmt: skip
def test_args_come_back(arg):
    node = Node(ops.INTRINSIC, void, (), arg)
    assert parse(show(node)) is node
    assert type(parse(show(node)).arg) is type(arg)


def test_an_arg_that_is_no_data_is_refused():
    with pytest.raises(TypeError, match="intrinsic has an arg that is no program data: frozenset"):
        show(Node(ops.INTRINSIC, void, (), frozenset((1,))))


def test_a_deep_graph_prints_and_parses():
    deep = placeholder()
    for _ in range(10_000):
        deep = ops.SIN(deep)
    assert parse(show(deep)) is deep


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%0 = const float32 0.5\n%1 = add float32 %0, %7\n", "line 2: '%7' is no node of an ear"),
        ("%0 = frobnicate float32\n", "line 1: there is no op 'frobnicate'"),
        ("%0 = const float33 1\n", "line 1: no dtype is called 'float33'"),
        ("%0 = const float32 half\n", "line 1: 'half' is no value of float32"),
        ("%0 = const bool 1\n", "line 1: '1' is no value of bool"),
        ("# note\nadd %0\n", "line 2: expected `%number = op dtype sources : arg`: add %0"),
        ("%0 = iota int64 : (1, (2)\n", "line 1: expected one value"),
        ("%0 = iota int64 : 1)\n", "line 1: a bracket is closed that was not opened"),
        ("%0 = iota int64 : &\n", "line 1: cannot read '&'"),
        ("%0 = iota int64 : 4\n%0 = iota int64 : 5\n", "line 2: %0 is defined twice"),
        ("%0 = iota int64 : 4\nroots %0\n%1 = iota int64 : 4\n", "line 3: nothing may follow"),
        ("%0 = permute float32 : (0,)\n", "line 1: permute cannot be made"),
        ("\n# nothing\n", "the text has no node"),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(ValueError) as error:
        parse(text)
    assert message in str(error.value)


# ---- functions -----------------------------------------------------------------------------------
def row_sums():
    """A program with a loop that stands twice, a symbolic bound and a parameter of each kind."""
    t = index.variable("T", 1, 64)
    x, y = (Node(ops.ARG, float32, (), (n, (t,))) for n in (0, 1))
    scale = Node(ops.SCALAR, float32, (), 0)
    zero = Node(ops.CONST, INDEX, (), 0)
    task = Node(ops.SPECIAL, INDEX, (), ("task", 0, t))
    loop = Node(ops.LOOP, INDEX, (zero, t), (0, 1))
    value = ops.MUL(Node(ops.READ, float32, (x, loop)), scale)
    write = Node(ops.WRITE, void, (y, loop, value), "nontemporal")
    end = Node(ops.END, void, (loop,))
    steps = (loop, value.src[0], value, write, end)
    return Function("row_sums", (x, y, scale, t), (task, *steps, *steps), index.mul(t, 2), (32, 1))


def test_a_function_keeps_its_list():
    function = row_sums()
    text = show_function(function)
    assert parse_function(text, Function) == function
    assert text.count("again") == 5
    assert "    again" in text  # inside the loop, which is indented


def test_a_function_reads_well():
    assert show_function(row_sums()).splitlines()[:9] == [
        "function row_sums",
        'let %0 = variable index : ("T", 1, 64)',
        "param %1 = arg float32 : (0, (%0,))",
        "param %2 = arg float32 : (1, (%0,))",
        "param %3 = scalar float32 : 0",
        "param %0",
        "tasks %4 = isum index %0 : (0, (2,))",
        "block (32, 1)",
        '  %5 = special index : ("task", 0, %0)',
    ]


def test_a_function_without_tasks_or_parameters():
    function = Function("empty", (), ())
    assert parse_function(show_function(function), Function) == function
    with pytest.raises(ValueError, match="no line `function name`"):
        parse_function("tasks 4\n", Function)
