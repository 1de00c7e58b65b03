"""Kernels that users write: on every backend, under jit, vmap and derivatives, and their errors."""

from __future__ import annotations

import numpy as np
import pytest

import treadle
from treadle import Tensor, Variable, custom_kernel, custom_monoid, jit
from treadle.backend.interp.graph import evaluate
from treadle.graph.batching import batched
from treadle.graph.forward import tangents
from treadle.ir import ops, text
from treadle.ir.node import toposort
from treadle.transforms import grad

DEVICES = ("CPU", "C", "INTERP")
RNG = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def distance_vjp(inputs, outputs, cotangents):
    x, y = inputs
    g = cotangents
    difference = x.reshape(x.shape[0], 1, -1) - y
    part = 2 * difference * g.reshape(*g.shape, 1)
    return part.sum(1), -part.sum(0)


@custom_kernel(vjp=distance_vjp)
def distance(k, x, y):
    """Squared distances of the rows of x from those of y."""
    (n, d), (m, _) = x.shape, y.shape
    i, j, c = k.ranges(n, m, d)
    return k.output(k.reduce("add", (x[i, c] - y[j, c]) ** 2, over=c), i, j)


def distances(x, y):
    return ((x[:, None] - y[None]) ** 2).sum(-1)


def calls(tensor):
    return treadle.explain(tensor).count("because")


# ---- values --------------------------------------------------------------------------------------
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("n", "m", "d"), [(5, 7, 3), (1, 1, 1), (33, 2, 17), (4, 1, 0), (0, 3, 2)])
def test_every_backend(device, n, m, d):
    x, y = normal(n, d), normal(m, d)
    out = distance(Tensor(x).to(device), Tensor(y).to(device))
    np.testing.assert_allclose(out.numpy(), distances(x, y), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "uint8"])
def test_dtypes(dtype):
    @custom_kernel
    def total(k, x):
        i, j = k.ranges(*x.shape)
        return k.output(k.reduce("add", x[i, j], over=j), i)

    x = Tensor(RNG.integers(0, 5, (3, 40))).cast(dtype)
    out = total(x)
    assert out.dtype.name == dtype
    np.testing.assert_array_equal(out.float().numpy(), x.float().numpy().sum(1))


@pytest.mark.parametrize("device", DEVICES)
def test_several_outputs_in_a_tree(device):
    @custom_kernel
    def moments(k, x):
        i, j = k.ranges(*x.shape)
        count, mean, m2 = k.reduce("welford", x[i, j], over=j)
        return {"mean": k.output(mean, i), "variance": k.output(m2 / count, i)}

    x = normal(6, 19) + 1000
    out = moments(Tensor(x).to(device))
    np.testing.assert_allclose(out["mean"].numpy(), x.mean(1), rtol=1e-6)
    np.testing.assert_allclose(out["variance"].numpy(), x.astype(np.float64).var(1), rtol=1e-4)


def test_the_softmax_of_a_row_is_one_loop_nest():
    @custom_kernel
    def softmax(k, x):
        i, j = k.ranges(*x.shape)
        most = k.reduce("max", x[i, j], over=j)
        powers = (x[i, j] - most).exp()
        return k.output(powers / k.reduce("add", powers, over=j), i, j)

    x = normal(3, 50)
    np.testing.assert_allclose(
        softmax(Tensor(x)).numpy(), Tensor(x).softmax(-1).numpy(), rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("device", DEVICES)
def test_log_sum_exp_of_special_values(device):
    @custom_kernel
    def log_sum_exp(k, x):
        i, j = k.ranges(*x.shape)
        most, total = k.reduce("logsumexp", x[i, j], over=j)
        return k.output(most + total.log(), i)

    inf, nan = np.inf, np.nan
    rows = [[-inf, -inf, -inf], [inf, 0, 1], [nan, 0, inf], [-inf, 3, 1e4], [-1e4, -1e4, -1e4]]
    x = np.array(rows, np.float32)
    expected = [-inf, inf, nan, 1e4, -1e4 + np.log(3)]
    with np.errstate(all="ignore"):
        out = log_sum_exp(Tensor(x).to(device)).numpy()
    np.testing.assert_allclose(out, np.array(expected, np.float32), rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_a_monoid_of_the_user(device):
    @custom_monoid(identity=(1.0, 0.0))
    def affine(a, b):  # commutative for these: x -> a*x, and the sum of logs
        return a[0] * b[0], a[1] + b[1]

    @custom_kernel
    def both(k, x):
        (j,) = k.ranges(*x.shape)
        product, total = k.reduce(affine, (x[j], x[j].log()), over=j)
        return k.output(product), k.output(total)

    x = RNG.uniform(0.5, 1.5, 21).astype(np.float32)
    product, total = both(Tensor(x).to(device))
    np.testing.assert_allclose(product.numpy(), x.prod(), rtol=1e-5)
    np.testing.assert_allclose(total.numpy(), np.log(x).sum(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_the_nearest_centre(device):
    @custom_kernel
    def nearest(k, x, centres):
        (n, d), (m, _) = x.shape, centres.shape
        i, j, c = k.ranges(n, m, d)
        apart = k.reduce("add", (x[i, c] - centres[j, c]) ** 2, over=c)
        return k.output(k.reduce("argmin", (apart, j), over=j)[1], i)

    x, y = normal(40, 5), normal(9, 5)
    out = nearest(Tensor(x).to(device), Tensor(y).to(device))
    np.testing.assert_array_equal(out.numpy(), distances(x, y).argmin(1))
    assert "(40, 9)" not in treadle.explain(nearest(Tensor(x), Tensor(y)))


# ---- indices -------------------------------------------------------------------------------------
def test_guarded_loads_and_index_arithmetic():
    @custom_kernel
    def smooth(k, x):
        (n,) = x.shape
        i = k.range(n)
        left = x.load(i - 1, where=i > 0)
        right = x.load(k.minimum(i + 1, n - 1))
        return k.output(left + x[i] * i + right + x[(i * 3) % n] + x[i // 2], i)

    x = normal(8)
    i = np.arange(8)
    expected = np.where(i > 0, x[i - 1], 0) + x * i + x[np.minimum(i + 1, 7)] + x[i * 3 % 8]
    np.testing.assert_allclose(smooth(Tensor(x)).numpy(), expected + x[i // 2], rtol=1e-5)


def test_an_output_in_blocks():
    @custom_kernel
    def blocked(k, x):
        (n,) = x.shape
        a, c = k.ranges(n // 4, 4)
        return k.output(x[a * 4 + c] * 2, a * 4 + c, shape=(n,))

    x = normal(12)
    np.testing.assert_array_equal(blocked(Tensor(x)).numpy(), x * 2)


def test_indices_from_data_are_checked():
    @custom_kernel
    def rows(k, table, ids):
        i, c = k.ranges(ids.shape[0], table.shape[1])
        return k.output(table[ids[i], c], i, c)

    table = normal(5, 3)
    out = rows(Tensor(table), Tensor([4, 0, 4]))
    np.testing.assert_array_equal(out.numpy(), table[[4, 0, 4]])
    for wrong in (5, -1):
        with pytest.raises(IndexError, match=r"rows: an index is out of range, at .*test_custom"):
            rows(Tensor(table), Tensor([0, wrong])).numpy()


# ---- numbers, sizes, jit -------------------------------------------------------------------------
def test_floats_are_run_time_numbers():
    @custom_kernel
    def scaled(k, x, factor, power):
        (i,) = k.ranges(*x.shape)
        return k.output(x[i] ** power * factor, i)

    x = normal(9)
    graphs = set()
    for factor in (0.3, 0.7):
        out = scaled(Tensor(x), factor, 2)
        graphs.add(treadle.explain(out))
        assert out.dtype.name == "float32"
        np.testing.assert_allclose(out.numpy(), x**2 * np.float32(factor), rtol=1e-6)
    assert len(graphs) == 1
    assert scaled(Tensor(x).half(), 0.3, 2).dtype.name == "float16"

    @jit
    def step(x, factor):
        return scaled(x * 2, factor, 2)

    for factor in (0.1, 0.25, 1.0, 3.0):
        expected = (x * 2) ** 2 * np.float32(factor)
        np.testing.assert_allclose(step(Tensor(x), factor).numpy(), expected, rtol=1e-6)


def test_symbolic_sizes():
    rows = Variable("T", 1, 20)
    x, y = normal(20, 3), normal(4, 3)
    for size in (1, 7, 20):
        part = Tensor(x)[: rows.bind(size)]
        np.testing.assert_allclose(
            distance(part, Tensor(y)).numpy(), distances(x[:size], y), rtol=1e-5, atol=1e-5
        )


def test_jit_and_fused_neighbours():
    x, y = normal(6, 4), normal(5, 4)
    step = jit(lambda x, y: distance(x.T.relu().T, y + 1).sqrt().sum(0))
    expected = np.sqrt(distances(np.maximum(x, 0), y + 1)).sum(0)
    for _ in range(3):
        np.testing.assert_allclose(step(Tensor(x), Tensor(y)).numpy(), expected, rtol=1e-5)


def test_views_reshapes_and_constants_as_inputs():
    y = normal(4, 6)
    base = Tensor(y)
    for view, array in (
        (base.reshape(8, 3), y.reshape(8, 3)),
        (base.T, y.T),
        (base[:, 1:3], y[:, 1:3]),
        ((base * 2).reshape(3, 8), (y * 2).reshape(3, 8)),
        (Tensor.ones(3, 2), np.ones((3, 2), np.float32)),
        (Tensor.arange(6).float().reshape(3, 2), np.arange(6, dtype=np.float32).reshape(3, 2)),
    ):
        out = distance(view, view)
        np.testing.assert_allclose(out.numpy(), distances(array, array), rtol=1e-4, atol=1e-4)
    doubled = base * 2
    out = distance(doubled.reshape(8, 3), doubled.reshape(8, 3)).sum() + doubled.sum()
    twice = (y * 2).reshape(8, 3)
    np.testing.assert_allclose(out.numpy(), distances(twice, twice).sum() + twice.sum(), rtol=1e-4)


def test_an_input_is_overwritten_only_where_all_loops_are_done_with_it():
    @custom_kernel(schedule="reorder k, j\ngrid k")
    def both(k, x, y):
        i, j, copy = k.ranges(x.shape[0], x.shape[0], y.shape[0])
        return k.output(x[i] + 1, i), k.output(x[j] * y[copy], copy, j)

    x, y = normal(40), normal(3)
    cell = Tensor(x).realize()
    first, second = both(cell, Tensor(y))
    cell.assign(first)
    np.testing.assert_allclose(second.numpy(), np.outer(y, x), rtol=1e-6)
    np.testing.assert_allclose(cell.numpy(), x + 1, rtol=1e-6)

    @custom_kernel(schedule="reorder j, i")
    def shared(k, x, y):
        i, j = k.ranges(x.shape[0], y.shape[0])
        return k.output(x[i] + 1, i), k.output(x[i] * y[j], i, j)

    cell = Tensor(x).realize()
    first, second = shared(cell, Tensor(y))
    cell.assign(first)
    treadle.Tensor.realize(cell, second)
    np.testing.assert_allclose(second.numpy(), np.outer(x, y), rtol=1e-6)
    np.testing.assert_allclose(cell.numpy(), x + 1, rtol=1e-6)


def test_inside_scan():
    x, y = normal(3, 4, 2), normal(5, 2)

    def body(carry, step):
        found = distance(step, Tensor(y))
        return carry + found.sum(), found

    last, every = treadle.scan(body, Tensor(0.0), Tensor(x))
    expected = np.stack([distances(step, y) for step in x])
    np.testing.assert_allclose(every.numpy(), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(last.numpy(), expected.sum(), rtol=1e-5)
    transposed = Tensor(np.ascontiguousarray(x.transpose(1, 2, 0))).permute(2, 0, 1)
    every = treadle.scan(body, Tensor(0.0), transposed)[1]
    np.testing.assert_allclose(every.numpy(), expected, rtol=1e-5, atol=1e-5)


# ---- attention: one kernel, by the monoid of weighted sums ---------------------------------------
BLOCKED = """
reorder l2, m3, k
reorder l3, k2
join l, l2, l3
keep add2 as p
split j: jg | jr(2) | ju(4)
reorder l, jr
grid i, jg
stage arg2 at l as keys layout 0,2,1
split m: mo | mv(8)
split k: ko | kv(4)
unroll ju
vector mv, kv
"""


@custom_kernel
def attention(k, q, keys, v, block=16):
    """softmax(q keys^T / sqrt(d)) v, over blocks of keys."""
    (h, n, d), (_, m, _), (_, _, w) = q.shape, keys.shape, v.shape
    head, i, e = k.ranges(h, n, w)
    b, j, c = k.ranges(m // block, block, d)
    key = b * block + j
    score = k.reduce("add", q[head, i, c] * keys[head, key, c], over=c) * d**-0.5
    most = k.reduce("max", score, over=j)
    power = (score - most).exp()
    total = k.reduce("add", power, over=j)
    part = k.reduce("add", power * v[head, key, e], over=j)
    _, total, part = k.reduce("softmax", (most, total, part), over=b)
    return k.output(part / total, head, i, e)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("schedule", [None, BLOCKED])
def test_attention_in_one_kernel(device, schedule):
    q, keys, v = normal(2, 19, 8), normal(2, 32, 8), normal(2, 32, 8)
    score = np.einsum("hic,hjc->hij", q, keys) * 8**-0.5
    power = np.exp(score - score.max(-1, keepdims=True))
    expected = power @ v / power.sum(-1, keepdims=True)
    out = attention.scheduled(schedule)(*[Tensor(x).to(device) for x in (q, keys, v)])
    assert calls(out) == 1
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_what_cannot_be_joined():
    q, keys, v = (Tensor(normal(2, 8, 8)) for _ in range(3))
    for actions, message in {
        "join l, k": "k does not run as often as l",
        "join l, l2": "stand inside different ones",
        "reorder l2, k\nreorder l3, k2\njoin l, l3": "stands between these loops",
        "join l, l": "two different leaves or more",
        "grid i, j, l\njoin l, l2": "l is not a whole range any more",
    }.items():
        with pytest.raises(ValueError, match=message):
            attention.scheduled(actions)(q, keys, v, block=4)


# ---- derivatives and examples --------------------------------------------------------------------
def test_gradients_to_second_order():
    x, y = Tensor(normal(4, 3)), Tensor(normal(5, 3))

    def composed(x, y):
        return ((x.reshape(4, 1, 3) - y) ** 2).sum(-1)

    for numbers in (0, 1):
        found = grad(lambda x, y: distance(x, y).sin().sum(), numbers)(x, y)
        expected = grad(lambda x, y: composed(x, y).sin().sum(), numbers)(x, y)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-3, atol=1e-4)
    second = grad(lambda x: (grad(lambda x: distance(x, y).sin().sum())(x) ** 2).sum())(x)
    expected = grad(lambda x: (grad(lambda x: composed(x, y).sin().sum())(x) ** 2).sum())(x)
    np.testing.assert_allclose(second.numpy(), expected.numpy(), rtol=2e-3, atol=1e-2)


def test_backward():
    x, y = Tensor(normal(4, 3), requires_grad=True), Tensor(normal(5, 3))
    distance(x, y).sum().backward()
    difference = x.numpy()[:, None] - y.numpy()
    np.testing.assert_allclose(x.grad.numpy(), 2 * difference.sum(1), rtol=1e-4, atol=1e-4)


def test_forward_mode_by_transposition():
    x, y, t = Tensor(normal(4, 3)), Tensor(normal(5, 3)), Tensor(normal(4, 3))
    (moved,) = tangents([distance(x, y).node], {x.node: t.node})
    difference = x.numpy()[:, None] - y.numpy()
    np.testing.assert_allclose(
        Tensor._of(moved).numpy(), (2 * difference * t.numpy()[:, None]).sum(-1), rtol=1e-4
    )


@pytest.mark.parametrize("schedule", [None, "grid i\nunroll j"])
@pytest.mark.parametrize("has", [(True, True), (True, False), (False, True)])
def test_many_examples(schedule, has):
    kernel = distance.scheduled(schedule)
    x, y = normal(4, 3), normal(5, 3)
    xs, ys = normal(6, 4, 3), normal(6, 5, 3)
    one, other = Tensor(x), Tensor(y)
    many = {}
    if has[0]:
        many[one.node] = Tensor(xs).node
    if has[1]:
        many[other.node] = Tensor(ys).node
    examples = [distances(xs[n] if has[0] else x, ys[n] if has[1] else y) for n in range(6)]
    ((node, axis),) = batched([kernel(one, other).node], many, 6)
    assert axis
    np.testing.assert_allclose(Tensor._of(node).numpy(), examples, rtol=1e-4, atol=1e-5)
    assert calls(Tensor._of(node)) == 1
    gradient = grad(lambda x: distance(x, other).sin().sum())(one)
    ((node, _),) = batched([gradient.node], many, 6)
    each = [
        grad(lambda x, n=n: distance(x, Tensor(ys[n] if has[1] else y)).sin().sum())(
            Tensor(xs[n] if has[0] else x)
        ).numpy()
        for n in range(6)
    ]
    np.testing.assert_allclose(Tensor._of(node).numpy(), each, rtol=1e-3, atol=1e-4)


# ---- the program ---------------------------------------------------------------------------------
def test_schedule_is_part_of_the_kernel_and_of_its_text():
    x, y = Tensor(normal(8, 3)), Tensor(normal(8, 3))
    plain = distance(x, y)
    written = distance.scheduled("split j: j0 | jv(4)\nvector jv\ngrid i, j0  # tasks")(x, y)
    kernels = [n.src[0].arg[0] for n in (plain.node, written.node)]
    assert kernels[0].digest != kernels[1].digest
    assert text.parse(text.show(kernels[1])) is kernels[1]
    assert "vector jv < 4" in treadle.explain(written)
    np.testing.assert_allclose(plain.numpy(), written.numpy(), rtol=1e-6)


def test_graph_text_and_interpreter():
    x, y = Tensor(normal(3, 2)), Tensor(normal(4, 2))
    node = distance(x, y).node
    assert text.parse(text.show(node)) is node
    (value,) = evaluate([node], {x.node: x.numpy(), y.node: y.numpy()})
    np.testing.assert_allclose(value, distances(x.numpy(), y.numpy()), rtol=1e-6)
    assert sum(n.op is ops.KERNEL for n in toposort(node)) == 1


# ---- errors --------------------------------------------------------------------------------------
def described(body, *inputs):
    return custom_kernel(body)(*inputs)


ERRORS = {
    "takes 2 indices, one per axis, not 1": lambda k, x: k.output(x[k.range(3)], 0, shape=(1,)),
    "index i of axis 1 runs from 0 to 3, but the size is 3": lambda k, x: k.output(
        x[0, k.range(4)]
    ),
    "a race: the 3 points of range j": lambda k, x: (lambda i, j: k.output(x[i, j], i))(
        *k.ranges(*x.shape)
    ),
    "do not name every element": lambda k, x: k.output(1.0, k.range(3), shape=(4,)),
    "no monoid 'sum'; there are add": lambda k, x: k.reduce("sum", x[0, 0], over=k.range(2)),
    "return k.output": lambda k, x: x[0, 0],
    "works on whole tensors": lambda k, x: x[0, 0].softmax(0),
    "not known while the kernel is described": lambda k, x: k.output(1.0 if x[0, 0] > 0 else 0.0),
    "it must be an integer": lambda k, x: k.output(x[x[0, 0], 0]),
    "argmax folds 2 values, and 1": lambda k, x: k.reduce("argmax", x[0, 0], over=k.range(2)),
    "read element by element": lambda k, x: sum(x),
    "folds over ranges of k.range": lambda k, x: k.reduce("add", x[0, 0], over=3),
    "is divided by an int that is positive": lambda k, x: x[k.range(2) // 0, 0],
    "is for floating-point|is for": lambda k, x: k.output(k.bitwise_and(x[0, 0], x[0, 0])),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_say_what_is_wrong(message):
    with pytest.raises((TypeError, ValueError, IndexError), match=message):
        described(ERRORS[message], Tensor(normal(2, 3)))


def test_errors_of_schedules_and_derivatives():
    x, y = Tensor(normal(4, 3)), Tensor(normal(5, 3))
    with pytest.raises(
        ValueError, match=r"(?s)distance: the schedule does not apply: .*'row'.*i, j"
    ):
        distance.scheduled("grid row")(x, y)
    with pytest.raises(ValueError, match="is no action; actions begin with"):
        distance.scheduled("tile i")(x, y)

    @custom_kernel
    def plain(k, x):
        i, j = k.ranges(*x.shape)
        return k.output(x[i, j] * 2, i, j)

    with pytest.raises(NotImplementedError, match=r"plain has no derivative.*vjp="):
        grad(lambda x: plain(x).sum())(x)
    wrong = custom_kernel(vjp=lambda inputs, outputs, g: (g, g))(plain.function)
    with pytest.raises(ValueError, match="returned 2 cotangents for 1 arguments"):
        grad(lambda x: wrong(x).sum())(x)
    wrong = custom_kernel(vjp=lambda inputs, outputs, g: (g.sum(),))(plain.function)
    with pytest.raises(ValueError, match=r"returned float32 of shape \(\) for float32 of shape"):
        grad(lambda x: wrong(x).sum())(x)
    with pytest.raises(TypeError, match="an argument is a tensor"):
        plain([1.0])
