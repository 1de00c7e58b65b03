"""Complex numbers: values against NumPy and exact ones, special cases, memory, and who refuses."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import treadle
from treadle import Tensor, nn
from treadle.graph import complex_names
from treadle.graph.public import LINALG, METHODS, NAMESPACE
from treadle.ir import dtype as dt
from treadle.ir.text import parse, show

BOTH = (np.complex64, np.complex128)
FEW = settings(deadline=None, max_examples=8)
RANDOM = np.random.default_rng(3)


def numbers(*shape, dtype=np.complex64):
    return (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(dtype)


def close(found, expected, digits=20):
    """Equal but for some units in the last place of the greater part."""
    found = found.numpy() if isinstance(found, Tensor) else found
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    epsilon = np.finfo(found.dtype).eps
    np.testing.assert_allclose(found, expected, rtol=digits * epsilon, atol=digits * epsilon)


# ---- arithmetic ----------------------------------------------------------------------------------
def arrays(dtype, **named):
    return npst.arrays(
        dtype,
        npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements=st.complex_numbers(
            max_magnitude=1e3, allow_nan=False, width=64 if dtype is np.complex64 else 128
        ),
        **named,
    )


@FEW
@given(data=st.data(), dtype=st.sampled_from(BOTH))
def test_arithmetic_is_numpys(data, dtype):
    """On the interpreter, which compiles nothing for a new shape."""
    x = data.draw(arrays(dtype))
    y = numbers(*x.shape, dtype=dtype)
    a, b = Tensor(x, device="INTERP"), Tensor(y, device="INTERP")
    close(a + b, x + y)
    close(a - b, x - y)
    close(-a, -x)
    close((a * b) / (1 + abs(a)), (x * y) / (1 + abs(x)))
    close(a / b, x / y, 40)
    close(a * 2, x * dtype(2))
    close(1j - a, dtype(1j) - x)
    close(a.conj(), x.conj())
    close(a.real, x.real)
    close(a.imag, x.imag)
    np.testing.assert_array_equal((a == b).numpy(), x == y)
    np.testing.assert_array_equal((a != a).numpy(), x != x)


@FEW
@given(data=st.data())
def test_movements_move_both_parts(data):
    x = data.draw(arrays(np.complex64))
    a = Tensor(x, device="INTERP")
    np.testing.assert_array_equal(a.flatten().numpy(), x.reshape(-1))
    np.testing.assert_array_equal(a.reshape(*x.shape, 1).numpy(), x[..., None])
    np.testing.assert_array_equal(a.flip(tuple(range(x.ndim))).numpy(), np.flip(x))
    np.testing.assert_array_equal(treadle.stack([a, -a], dim=-1).numpy(), np.stack([x, -x], -1))
    if x.ndim:
        np.testing.assert_array_equal(a[::2].numpy(), x[::2])
        np.testing.assert_array_equal(a.movedim(0, -1).numpy(), np.moveaxis(x, 0, -1))
        np.testing.assert_array_equal(a.roll(1, 0).numpy(), np.roll(x, 1, 0))
        close(a.sum(0), x.sum(0), 100)
        close(a.cumsum(0), x.cumsum(0), 2000)


def test_promotion():
    kinds = {np.bool_: 0, np.int8: 0, np.int64: 0, np.float16: 0, np.float32: 0, np.float64: 1}
    for kind, wide in kinds.items():
        x = Tensor(np.ones(2, kind))
        assert (x + Tensor([1j])).dtype is (dt.complex128 if wide else dt.complex64)
        assert (x * 1j).dtype is (dt.complex128 if wide else dt.complex64)
        assert (x * Tensor(np.array([1j]))).dtype is dt.complex128
    z = Tensor([1j])
    assert (z * 2.5).dtype is (z + True).dtype is (z - 1).dtype is dt.complex64
    assert dt.promote(dt.bfloat16, dt.complex64) is dt.complex64
    assert treadle.result_type(treadle.float64, 1j) is treadle.complex128
    assert treadle.can_cast(treadle.float32, treadle.complex64)
    assert not treadle.can_cast(treadle.complex64, treadle.float32)
    assert treadle.finfo(treadle.complex128).eps == 2.0**-52
    info = treadle.__array_namespace_info__()
    assert [*info.dtypes(kind="complex floating")] == ["complex64", "complex128"]
    assert treadle.isdtype(treadle.cfloat, "complex floating")
    assert treadle.isdtype(treadle.cdouble, "numeric")


def test_a_real_factor_scales_both_parts():
    """A factor of a real dtype makes no NaN of an infinite part, nor does a real divisor."""
    z = Tensor(complex(np.inf, 1.0))
    for result in (z * 2, 2 * z, z * Tensor(2.0), z / 0.5):
        assert result.item() == complex(np.inf, 2.0)
    assert np.isnan((z * (2 + 0j)).item().imag)


def test_quotients_by_nothing_and_infinity():
    z = Tensor([1 + 1j, 0])
    found = (z / Tensor([0j, 0j])).numpy()
    assert found[0] == complex(np.inf, np.inf)
    assert np.isnan(found[1])
    assert (z / Tensor(complex(np.inf, 1))).tolist() == [0, 0]
    assert (1 / Tensor(complex(0, -np.inf))).item() == 0


@pytest.mark.parametrize("dtype", BOTH)
def test_extreme_magnitudes(dtype):
    """Nothing overflows or is lost on the way: quotients and roots of 2**n z are as those of z."""
    z, w = numbers(50, dtype=dtype), numbers(50, dtype=dtype)
    top = np.finfo(dtype).maxexp - 4
    for scale in (2.0**top, 2.0**-top):
        large, divisor = (z * dtype(scale)).astype(dtype), (w * dtype(scale)).astype(dtype)
        back, other = large / dtype(scale), divisor / dtype(scale)  # what subnormal numbers keep
        close(Tensor(large) / Tensor(divisor), back / other)
        close(Tensor(large).abs() / scale, np.abs(back))
        root = Tensor(large).sqrt().numpy() / np.sqrt(scale)
        close(root.astype(dtype), np.sqrt(back))
        expected = np.log(back.astype(np.complex128)) + np.log(scale)
        close(Tensor(large).log(), expected.astype(dtype))
        assert np.isfinite(Tensor(large).asinh().numpy()).all()


def test_products_of_matrices():
    a, b, v = numbers(3, 4, 5), numbers(3, 5, 2), numbers(5)
    x, y = Tensor(a), Tensor(b)
    close(x @ y, a @ b, 100)
    close(x @ Tensor(v), a @ v, 100)
    close(Tensor(a.real.copy()) @ y, (a.real @ b).astype(np.complex64), 100)
    close(x @ Tensor(b.real.copy()), (a @ b.real).astype(np.complex64), 100)
    close(treadle.einsum("bij,bjk->ik", x, y), np.einsum("bij,bjk->ik", a, b), 100)
    close(Tensor(v).dot(Tensor(v)), np.dot(v, v), 100)
    close(Tensor(v).vdot(Tensor(v)), np.vdot(v, v), 100)
    close(
        treadle.vecdot(Tensor(v), Tensor(v)),
        np.vecdot(v, v) if hasattr(np, "vecdot") else np.vdot(v, v),
        100,
    )
    close(Tensor(v).outer(Tensor(v)), np.outer(v, v), 100)
    close(x[0].mH, a[0].conj().T, 0)
    assert (x[0] @ x[0].mH).isclose((x[0] @ x[0].H).mH, 1e-4, 1e-4).all()
    kernels = treadle.explain(x[0] @ y[0]).splitlines()[0]
    assert int(kernels.split()[0]) <= 10, kernels


def test_reductions():
    a = numbers(4, 6)
    x = Tensor(a)
    close(x.mean(), a.mean())
    close(x.prod(0), a.prod(0), 100)
    close(x.prod(), a.prod(), 200)
    close(x.var(1), a.var(1, ddof=1).astype(np.float32))
    close(x.std(), a.std(ddof=1).astype(np.float32))
    close(x.norm(), np.linalg.norm(a))
    close(treadle.linalg.vector_norm(x, 1), np.abs(a).sum())
    close(treadle.linalg.norm(x, float("inf")), np.abs(a).sum(1).max())
    close(x.cumprod(1), a.cumprod(1), 100)
    close(x.trace(), a.trace())
    assert x.any().item() is True
    assert Tensor([0j, 1j, 0]).count_nonzero().item() == 1
    assert Tensor(np.zeros((0, 2), np.complex64)).sum().item() == 0
    assert Tensor(np.zeros(0, np.complex64)).prod().item() == 1


# ---- functions -----------------------------------------------------------------------------------
FUNCTIONS = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "abs": np.abs, "angle": np.angle, "square": np.square, "reciprocal": np.reciprocal,
    "exp2": lambda z: np.exp(z * np.log(2)), "rsqrt": lambda z: 1 / np.sqrt(z),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)), "sgn": lambda z: z / np.abs(z),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_numpys_in_twice_the_digits(name):
    z = numbers(300) * np.exp(RANDOM.normal(size=300)).astype(np.float32)
    expected = FUNCTIONS[name](z.astype(np.complex128))
    kind = np.float32 if expected.dtype.kind == "f" else np.complex64
    found = getattr(Tensor(z), name)().numpy()
    assert found.dtype == kind
    np.testing.assert_allclose(found, expected.astype(kind), rtol=4e-6)
    twice = getattr(Tensor(z.astype(np.complex128)), name)().numpy()
    np.testing.assert_allclose(twice, expected, rtol=1e-12)  # (NumPy loses digits in log1p)


def test_small_numbers_keep_their_digits():
    z = numbers(50, dtype=np.complex128) * 1e-9
    for name, second in (("expm1", 0.5), ("log1p", -0.5)):
        close(getattr(Tensor(z), name)() * 1e9, (z + second * z * z) * 1e9, 4)
    for name in ("sin", "sinh", "tan", "tanh", "asin", "asinh", "atan", "atanh"):
        close(getattr(Tensor(z), name)() * 1e9, z * 1e9, 4)


EDGES = (-np.inf, -1.5, -1.0, -0.0, 0.0, 1.0, 1.5, np.inf, np.nan)
HAS_TABLE = (
    "exp", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "asin", "acos", "atan", "asinh", "acosh", "atanh", "abs",
)  # fmt: skip


@pytest.mark.parametrize("name", HAS_TABLE)
def test_special_cases_are_those_of_the_standard(name):
    """Infinities, NaN, and on which side of a cut a zero stands: C99, Annex G, as NumPy has it from
    the C library. Beside a NaN signs are open, and so are those of zeros of what is not finite."""
    z = np.empty((len(EDGES), len(EDGES)), np.complex128)
    z.real, z.imag = np.array(EDGES)[:, None], EDGES
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](z)
    found = getattr(Tensor(z), name)().numpy()
    is_open = np.isnan(expected)
    for part in ("real", "imag") if found.dtype.kind == "c" else ("real",):
        ours, theirs = getattr(found, part).copy(), getattr(expected, part).copy()
        ours[is_open], theirs[is_open] = abs(ours[is_open]), abs(theirs[is_open])
        np.testing.assert_allclose(ours, theirs, rtol=1e-14, err_msg=f"{name}: {part}")
        zeros = np.isfinite(z) & (theirs == 0)
        np.testing.assert_array_equal(np.signbit(ours)[zeros], np.signbit(theirs)[zeros])


def test_special_cases_of_expm1():
    """By the table of the Array API standard; NumPy has other values."""
    inf, nan = np.inf, np.nan
    table = [
        ((0, 0), (0, 0)), ((1, inf), (nan, nan)), ((1, nan), (nan, nan)), ((inf, 0), (inf, 0)),
        ((-inf, 1), (-1, 0)), ((inf, 1), (inf, inf)), ((-inf, inf), (-1, 0)),
        ((inf, inf), (inf, nan)), ((-inf, nan), (-1, 0)), ((inf, nan), (inf, nan)),
        ((nan, 0), (nan, 0)), ((nan, 1), (nan, nan)), ((nan, nan), (nan, nan)),
    ]  # fmt: skip
    for given_, expected in table:
        found = Tensor(np.array(complex(*given_))).expm1().item()
        np.testing.assert_array_equal((found.real, found.imag), expected, err_msg=str(given_))


def test_tests_of_numbers():
    z = np.array([complex(np.inf, np.nan), complex(1, np.nan), complex(0, -np.inf), 1 + 1j])
    assert Tensor(z).isinf().tolist() == [True, False, True, False]
    assert Tensor(z).isnan().tolist() == [True, True, False, False]
    assert Tensor(z).isfinite().tolist() == [False, False, False, True]
    assert Tensor(z[:2]).isclose(Tensor(z[:2]), equal_nan=True).tolist() == [True, True]
    assert Tensor(z[3:]).allclose(Tensor(z[3:] * (1 + 1e-9)))
    assert not Tensor([1j]).allclose(Tensor([1.0]))
    assert Tensor([1j, 2]).isreal().tolist() == [False, True]


def test_powers():
    z = numbers(20, dtype=np.complex128)
    for n in (0, 1, 2, 5, -1, -3, 0.5, 2.5, 1j, 2 - 1j):
        close(Tensor(z) ** n, z**n, 100)
    w = numbers(20, dtype=np.complex128)
    close(Tensor(z) ** Tensor(w), z**w, 200)
    close(2.0 ** Tensor(z), 2.0**z, 100)
    assert (Tensor(0j) ** Tensor(0j)).item() == 1
    assert (Tensor(0j) ** 2.5).item() == 0


# ---- made, taken apart, moved out ----------------------------------------------------------------
def test_numbers_come_in_and_go_out():
    assert Tensor(1 + 2j).item() == 1 + 2j
    assert Tensor([[1, 2j], [3.0, True]]).tolist() == [[1, 2j], [3, 1]]
    assert Tensor([1j]).dtype is dt.complex64
    assert Tensor(np.array([1j])).dtype is dt.complex128
    assert Tensor([1, 2], dtype=complex).dtype is dt.complex64
    assert Tensor([np.complex128(1j)]).dtype is dt.complex128
    assert repr(Tensor([1 + 2j, 0.5])) == "Tensor([1. +2.j, 0.5+0.j], dtype=complex64)"
    assert complex(Tensor(2j)) == 2j
    x = Tensor(numbers(3))
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.clone(), Tensor(x.numpy())):
        assert again.dtype is x.dtype
        assert again.tolist() == x.tolist()
    assert np.from_dlpack(x).tolist() == x.tolist()
    assert treadle.from_dlpack(numbers(4)).dtype is dt.complex64
    assert np.exp(x).dtype is dt.complex64
    assert x.nbytes == 24


def test_parts():
    re, im = RANDOM.normal(size=(2, 3)), RANDOM.normal(size=3)
    z = treadle.complex(Tensor(re), Tensor(im))
    close(z, re + 1j * im, 0)
    assert treadle.complex(Tensor([1.0]), Tensor([2])).dtype is dt.complex64
    close(treadle.view_as_real(z), np.stack([z.real.numpy(), z.imag.numpy()], -1), 0)
    close(treadle.view_as_complex(treadle.view_as_real(z)), z.numpy(), 0)
    close(treadle.polar(Tensor([2.0]), Tensor([0.5])), np.array([2 * np.exp(0.5j)], np.complex64))
    assert z.is_complex()
    assert treadle.is_complex(z)
    assert not z.real.is_complex()
    with pytest.raises(ValueError, match="the last dimension is of size 2"):
        treadle.view_as_complex(Tensor([1.0, 2.0, 3.0]))
    with pytest.raises(TypeError, match="view_as_real is for complex numbers"):
        treadle.view_as_real(Tensor([1.0]))
    assert Tensor([-1.0, 2.0, float("nan")]).angle().tolist()[:2] == [pytest.approx(np.pi), 0]


def test_casts():
    z = Tensor([1.5 + 2j, 0.5j])
    assert z.to(treadle.complex128).tolist() == [1.5 + 2j, 0.5j]
    assert z.bool().tolist() == [True, True]
    assert Tensor([True, False]).cfloat().tolist() == [1, 0]
    assert Tensor([2]).cdouble().dtype is dt.complex128
    with pytest.warns(UserWarning, match="leaves out the imaginary parts"):
        assert z.float().tolist() == [1.5, 0]
    with pytest.raises(TypeError, match="astype: complex64 numbers are no float32"):
        treadle.astype(z, treadle.float32)
    for refused in (
        lambda: Tensor([1j], dtype="float32"),
        lambda: Tensor([1.0]).assign(Tensor([1j])),
        lambda: Tensor([1.0]).add_(1j),
        lambda: Tensor([1.0]).__setitem__(0, 1j),
        lambda: Tensor([1.0]).masked_fill(Tensor([True]), 1j),
        lambda: float(Tensor(1j)),
        lambda: treadle.full((2,), 1j, dtype="float32"),
        lambda: z.bitcast(treadle.float64),
        lambda: z.sum(dtype=treadle.float32),
    ):
        with pytest.raises((TypeError, NotImplementedError), match=r"complex"):
            refused()


def test_memory_is_written_in_place():
    x = Tensor(numbers(4))
    x.realize()
    before = x.numpy()
    x[1] = 5j
    x += 1
    x[2:] = x[:2]
    before[1] = 5j
    before += 1
    before[2:] = before[:2].copy()
    np.testing.assert_array_equal(x.numpy(), before)
    index = Tensor([3, 0])
    np.testing.assert_array_equal(x[index].numpy(), before[[3, 0]])
    np.testing.assert_array_equal(x[x.real > 0].numpy(), before[before.real > 0])
    added = x.index_add(0, index, Tensor([1j, 1j])).numpy()
    np.testing.assert_array_equal(added[[0, 3]], before[[0, 3]] + np.complex64(1j))


def test_random_numbers_have_variance_1():
    Tensor.manual_seed(3)
    z = Tensor.randn(20000, dtype=treadle.complex64)
    assert abs(z.mean().item()) < 0.02
    assert z.var().item() == pytest.approx(1, abs=0.05)
    assert (z * z).mean().abs().item() < 0.05  # both parts have the same share
    u = Tensor.rand(100, dtype=treadle.complex128)
    assert u.dtype is dt.complex128
    assert 0 <= u.imag.min().item() <= u.imag.max().item() < 1


def test_files(tmp_path):
    pytest.importorskip("safetensors")
    state = {"z": Tensor([1j, 2])}
    nn.safe_save(state, tmp_path / "z")
    assert nn.safe_load(tmp_path / "z")["z"].tolist() == [1j, 2]
    with pytest.raises(TypeError, match="no complex128"):
        nn.safe_save({"z": state["z"].cdouble()}, tmp_path / "w")


def test_graphs_of_complex_numbers_are_text():
    node = (Tensor(numbers(2)) * Tensor(numbers(2)) + 1).node
    assert parse(show(node)) is node


# ---- programs ------------------------------------------------------------------------------------
def each(z):
    return z * z.conj().sum() + 1j / (1 + abs(z))


@pytest.mark.parametrize("device", ["CPU", "INTERP"])
def test_devices(device):
    a = numbers(5)
    x = Tensor(a, device=device)
    close(each(x), a * a.conj().sum() + np.complex64(1j) / (1 + abs(a)), 50)
    assert x.to("CPU").tolist() == a.tolist()


def test_captured():
    @treadle.jit
    def f(z, s):
        return each(z) * s, z.real

    for _ in range(3):
        a = numbers(5)
        z, re = f(Tensor(a), 2.0)
        close(z, 2 * (a * a.conj().sum() + np.complex64(1j) / (1 + abs(a))), 50)
        close(re, a.real.copy(), 0)


def test_loops_carry_them():
    a = numbers(6)
    last, ys = treadle.scan(lambda c, x: (c * x, c + x), Tensor(1 + 0j), Tensor(a))
    products = np.cumprod(a)
    close(last, products[-1], 50)
    close(ys, np.concatenate([[1], products[:-1]]).astype(np.complex64) + a, 50)
    found = treadle.while_loop(lambda c: abs(c) < 10, lambda c: c * (1 + 1j), Tensor(1 + 0j))
    assert found.item() == pytest.approx((1 + 1j) ** 7)
    chosen = treadle.cond(Tensor(True), lambda c: c * 1j, lambda c: c, Tensor([2 + 0j]))
    assert chosen.tolist() == [2j]
    loss = lambda z: treadle.scan(lambda c, x: (c * x, c), Tensor(1 + 0j), z)[0].abs()  # noqa: E731
    found = treadle.grad(loss)(Tensor(a)).numpy()
    size = abs(products[-1])
    np.testing.assert_allclose(found, size * a / abs(a) ** 2, rtol=1e-4)


def test_many_at_once():
    a = numbers(3, 4)
    close(treadle.vmap(each)(Tensor(a)), np.stack([each(Tensor(row)).numpy() for row in a]), 5)
    close(
        treadle.vmap(lambda z, w: (z / w).exp() @ z, (0, None))(Tensor(a), Tensor(a[0])),
        np.stack([np.exp(row / a[0]) @ row for row in a]),
        100,
    )


def test_gradients_are_pytorchs():
    """Of a real loss: dL/d re + i dL/d im. Of z: what `gradient` says, times the conjugate of the
    derivative."""
    a = numbers(4)
    x = Tensor(a, requires_grad=True)
    (x * x.conj()).sum().real.backward()
    close(x.grad, 2 * a)
    y = Tensor(a, requires_grad=True)
    with pytest.raises(RuntimeError, match="needs `gradient=`"):
        y[0].backward()
    (y**3).backward(Tensor(np.ones(4, np.complex64)))
    close(y.grad, np.conj(3 * a**2), 50)
    z = Tensor(np.zeros(1, np.complex64), requires_grad=True)
    (z.abs() + z.angle() + z.sgn().real).sum().backward()
    assert z.grad.tolist() == [0]
    w = Tensor(np.array([0j, 4]), requires_grad=True)
    treadle.where(Tensor([False, True]), w.sqrt() + w.log(), 0).real.sum().backward()
    assert w.grad.tolist() == [0, 0.5]


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("abs", "angle", "sgn")])
def test_derivatives_are_quotients_of_differences(name):
    z = numbers(6, dtype=np.complex128) * 0.7
    f = lambda x: getattr(x, name)()  # noqa: E731
    step, direction = 1e-6, numbers(6, dtype=np.complex128)
    two = [f(Tensor(z + sign * step * direction)).numpy() for sign in (1, -1)]
    expected = (two[0] - two[1]) / (2 * step)
    _, tangent = treadle.jvp(f, (Tensor(z),), (Tensor(direction),))
    np.testing.assert_allclose(tangent.numpy(), expected, rtol=1e-6)
    _, back = treadle.vjp(f, Tensor(z))
    (pulled,) = back(Tensor(direction))
    derivative = expected / direction
    np.testing.assert_allclose(pulled.numpy(), direction * derivative.conj(), rtol=1e-6)
    second = treadle.grad(lambda x: treadle.grad(lambda y: f(y).real.sum())(x).real.sum())
    assert np.isfinite(second(Tensor(z)).numpy()).all()


# ---- the table of public names -------------------------------------------------------------------
def entries():
    return {id(e): e for table in (METHODS, NAMESPACE, LINALG) for e in table.values()}.values()


def test_the_tables_of_names_are_of_names():
    names = {e.name for e in entries()} | {f"linalg.{name}" for name in LINALG}
    tables = [complex_names.WORKS, complex_names.ORDERED, set(complex_names.OF_COMPLEX)]
    assert set().union(*tables) <= names
    assert sum(map(len, tables)) == len(set().union(*tables))


def test_every_name_works_or_is_refused():
    """What is in no table is refused, whatever its arguments; what is ordered with TypeError."""
    known = complex_names.WORKS | set(complex_names.OF_COMPLEX)
    for entry in entries():
        chosen = complex_names.for_complex(entry)
        if entry.name not in known and "fft" not in entry.tables:
            is_ordered = entry.name in complex_names.ORDERED
            with pytest.raises(TypeError if is_ordered else NotImplementedError, match="complex"):
                chosen()
        assert callable(chosen)


def test_refusals_are_in_the_users_words():
    z = Tensor([1j, 2])
    for action, error, words in (
        (lambda: z < z, TypeError, "lt is for real numbers"),
        (lambda: z.sort(), TypeError, "no order"),
        (lambda: z % 2, TypeError, "remainder is for real numbers"),
        (lambda: Tensor([1.0]).maximum(z), TypeError, "maximum is for real numbers"),
        (lambda: z.softmax(), NotImplementedError, "softmax is not there for complex numbers"),
        (lambda: treadle.linalg.eigvals(z.outer(z)), NotImplementedError, "linalg.eigvals"),
        (lambda: treadle.arange(3, dtype="complex64"), NotImplementedError, "arange is not there"),
        (lambda: z.div(2, rounding_mode="floor"), TypeError, "complex64"),
        (lambda: treadle.jacobian(lambda x: x)(z), TypeError, "by each of their parts"),
        (lambda: treadle.grad(lambda x: x.sum())(z), TypeError, "one floating number"),
    ):
        with pytest.raises(error, match=words):
            action()


def test_real_programs_know_nothing_of_them():
    """A graph of real numbers goes through the pass unchanged, and no warning is given."""
    from treadle.graph.pairs import paired

    x = Tensor([1.0, 2.0]) * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert paired([x.node]) == [x.node]
        assert x.real is not None
        assert x.imag.tolist() == [0, 0]
