"""Linear algebra against NumPy: values, residuals, derivatives, sizes of programs, errors."""

import itertools

import numpy as np
import pytest

import treadle
from treadle import Tensor, grad, jvp, linalg, vmap
from treadle.ir.text import show

SIZES = [(0,), (1,), (2,), (5,), (33,), (129,), (3, 4), (2, 0, 3)]  # 129: in panels and blocks
# the same of complex matrices, whose programs are larger
KINDS = [(shape, dtype) for dtype in ("float32", "float64") for shape in SIZES]
KINDS += [(shape, "complex64") for shape in [(1,), (3, 4), (129,)]]
KINDS += [(shape, "complex128") for shape in [(0,), (2,), (33,), (70,)]]
DTYPES = ("float32", "float64", "complex64", "complex128")
WIDE = ("float64", "complex128")


def numbers(shape, dtype="float64", seed=0):
    random = np.random.default_rng(seed)
    found = random.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * random.standard_normal(shape)
    return found.astype(dtype)


def drawn(shape, dtype="float64", seed=0):
    """Random matrices with `shape[-1]` rows and columns."""
    return numbers((*shape, shape[-1]), dtype, seed)


def adjoint(a):
    return a.swapaxes(-1, -2).conj()


def positive(shape, dtype="float64"):
    a = drawn(shape, dtype)
    return a @ adjoint(a) + np.eye(shape[-1], dtype=dtype)


def close(ours, wanted, scale):
    """Equal up to 32 times what rounding makes of numbers up to `scale`."""
    got = ours.numpy()
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    bound = 32 * np.finfo(got.dtype).eps * scale
    assert np.all(np.abs(got - wanted) <= bound)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("shape", "dtype"), KINDS)
def test_solutions_leave_a_small_residual(shape, dtype):
    a, b = drawn(shape, dtype), drawn(shape, dtype, 1)
    x = linalg.solve(Tensor(a), Tensor(b))
    size = max(shape[-1], 1)
    largest = np.abs(x.numpy()).max(initial=1) * np.abs(a).max(initial=1)
    close(Tensor(a @ x.numpy()), b, size * largest)
    lower = np.tril(a) + size * np.eye(shape[-1], dtype=dtype)
    solved = linalg.solve_triangular(Tensor(lower), Tensor(b), upper=False)
    close(Tensor(lower @ solved.numpy()), b, size * 4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("shape", "dtype"), KINDS)
def test_factors_give_the_matrix_back(shape, dtype):
    size = max(shape[-1], 1)
    a, s = drawn(shape, dtype), positive(shape, dtype)
    factor = linalg.cholesky(Tensor(s)).numpy()
    assert np.array_equal(factor, np.tril(factor))
    assert np.array_equal(np.einsum("...ii->...i", factor.imag), np.zeros(shape))
    close(Tensor(factor @ adjoint(factor)), s, size * np.abs(s).max(initial=1))
    q, r = linalg.qr(Tensor(a))
    close(q @ r, a, size * np.abs(a).max(initial=1))
    close(q.mH @ q, np.broadcast_to(np.eye(shape[-1], dtype=dtype), a.shape), size)
    assert np.array_equal(r.numpy(), np.triu(r.numpy()))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 6), (4, 1), (0, 3), (3, 0)])
def test_qr_of_matrices_that_are_not_square(shape, dtype):
    a = numbers(shape, dtype, 2)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(Tensor(a), mode)
        wanted = np.linalg.qr(a, mode)
        close(q, wanted[0], 1)
        close(r, wanted[1], 8)
    close(linalg.qr(Tensor(a), "r")[1], np.linalg.qr(a, "r"), 8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (5,), (3, 4)])
def test_determinants_and_inverses(shape, dtype):
    a = drawn(shape, dtype)
    close(linalg.det(Tensor(a)), np.asarray(np.linalg.det(a)), 8)
    for ours, wanted in zip(linalg.slogdet(Tensor(a)), np.linalg.slogdet(a), strict=True):
        close(ours, np.asarray(wanted), 8)
    inverse = linalg.inv(Tensor(a)).numpy()
    close(Tensor(inverse @ a), np.broadcast_to(np.eye(shape[-1], dtype=dtype), a.shape), 64)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("shape", "dtype"), KINDS)
def test_eigenvalues_of_symmetric_matrices(shape, dtype):
    a = drawn(shape, dtype)
    s = a + adjoint(a)
    size = max(shape[-1], 1)
    values, vectors = linalg.eigh(Tensor(s))
    close(values, np.linalg.eigvalsh(s), size * 4)
    close(vectors * values.unsqueeze(-2), s @ vectors.numpy(), size * 4)
    close(vectors.mH @ vectors, np.broadcast_to(np.eye(shape[-1], dtype=dtype), s.shape), size)
    upper = linalg.eigvalsh(Tensor(np.triu(s)), "U")
    close(upper, np.linalg.eigvalsh(s), size * 4)


def test_repeated_eigenvalues():
    values, vectors = linalg.eigh(Tensor.eye(4, dtype="float64") * 3)
    assert values.tolist() == [3, 3, 3, 3]
    assert np.array_equal(abs(vectors.numpy()), np.eye(4))
    ones = np.ones((6, 6))
    values, vectors = linalg.eigh(Tensor(ones))
    close(values, np.asarray([0, 0, 0, 0, 0, 6.0]), 6)
    close(vectors.mT @ vectors, np.eye(6), 6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("is_full", [True, False])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *itertools.product(
            [(0, 3), (1, 1), (4, 2), (2, 5), (3, 5, 5), (2, 7, 3), (33, 20), (130, 97)], ["float64"]
        ),
        *itertools.product([(0, 3), (1, 1), (3, 2, 5), (70, 66)], ["complex128"]),
    ],
)
def test_singular_values(shape, is_full, dtype):
    a = numbers(shape, dtype, 4)
    if shape[-1] > 2:
        a[..., 1] = a[..., 0]  # not of full rank
    u, values, vh = linalg.svd(Tensor(a), is_full)
    for ours, wanted in zip((u, values, vh), np.linalg.svd(a, is_full), strict=True):
        assert ours.shape == wanted.shape
    close(values, np.linalg.svd(a, compute_uv=False), 64)
    k = values.shape[-1]
    close((u[..., :k] * values.unsqueeze(-2)) @ vh[..., :k, :], a, 64)
    for turned in (u.mH, vh):
        one = np.eye(turned.shape[-2], dtype=dtype)
        close(turned @ turned.mH, np.broadcast_to(one, (*shape[:-2], *one.shape)), 64)
    assert linalg.matrix_rank(Tensor(a)).tolist() == np.linalg.matrix_rank(a).tolist()
    if min(shape) > 0:
        close(linalg.pinv(Tensor(a)), np.linalg.pinv(a), 256)


def test_numbers_near_the_end_of_the_range():
    a = np.asarray([[3e30, 1e30], [1e30, 2e30]], "float32")
    assert np.allclose(linalg.eigvalsh(Tensor(a)).numpy(), np.linalg.eigvalsh(a.astype("float64")))
    assert np.allclose(linalg.svdvals(Tensor(a)).numpy(), np.linalg.svd(a.astype("float64"))[1])


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_singular_matrices(dtype):
    a = Tensor([[1.0, 2.0], [2.0, 4.0]], dtype=dtype)
    assert linalg.det(a).item() == 0
    assert [part.item() for part in linalg.slogdet(a)] == [0, -np.inf]
    assert not np.isfinite(linalg.inv(a).numpy()).all()
    assert np.isnan(linalg.cholesky(Tensor([[1.0, 2.0], [2.0, 1.0]], dtype=dtype)).numpy()).any()
    # the derivative of a determinant is the matrix of cofactors, also here
    slope = grad(lambda a: linalg.det(a).real)
    assert np.allclose(slope(a).numpy(), [[4, -2], [-2, 1]])
    assert np.abs(slope(Tensor(np.zeros((3, 3), dtype))).numpy()).max() < 1e-17


FUNCTIONS = {
    "solve": lambda a: linalg.solve(a, a.mT * a).sin(),
    "inv": lambda a: linalg.inv(a).sin(),
    "det": linalg.det,
    "slogdet": lambda a: linalg.slogdet(a)[0] * linalg.slogdet(a)[1],
    "cholesky": lambda a: linalg.cholesky(a @ a.mH + 1).sin(),
    "qr": lambda a: linalg.qr(a)[0].sin() + linalg.qr(a)[1].cos(),
    "triangular": lambda a: linalg.solve_triangular(a, a.sin(), upper=True, left=False),
    "eigvalsh": lambda a: linalg.eigvalsh(a + a.mH).sin(),
    "eigh": lambda a: (abs(linalg.eigh(a + a.mH)[1]) ** 2).cos(),
    "svdvals": lambda a: linalg.svdvals(a).sin(),
    "svd": lambda a: (abs(linalg.svd(a[:, :2], False)[2]) ** 2).cos(),
    "pinv": lambda a: linalg.pinv(a[:, :2]).sin(),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_first_and_second_order(name, dtype):
    function = FUNCTIONS[name]
    a, along = numbers((2, 3, 3), dtype, 3)
    a += 3 * np.eye(3)

    def value(x):
        return function(x).sum().real

    def slope(x):
        return jvp(value, (x,), (Tensor(along),))[1]

    for f, derivative in ((value, grad(value)), (slope, grad(slope))):
        step = 1e-5
        ahead, behind = (f(Tensor(a + sign * step * along)).item() for sign in (1, -1))
        wanted = (ahead - behind) / (2 * step)
        got = (derivative(Tensor(a)).conj() * Tensor(along)).sum().real.item()
        forward = jvp(f, (Tensor(a),), (Tensor(along),))[1].item()
        assert np.isclose(got, wanted, rtol=1e-6, atol=1e-7)
        assert np.isclose(forward, got, rtol=1e-9, atol=1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_at_once(name, dtype):
    def gradient(x):
        return grad(lambda x: FUNCTIONS[name](x).sum().real)(x)

    a = drawn((2, 3), dtype) + 3 * np.eye(3)
    together = vmap(gradient)(Tensor(a)).numpy()
    assert np.allclose(together, [gradient(Tensor(each)).numpy() for each in a], rtol=1e-9)


@pytest.mark.parametrize("dtype", WIDE)
def test_captured_functions(dtype):
    @treadle.jit
    def f(a):
        s = a @ a.mH + 1
        return linalg.solve(a, s), linalg.eigh(s)[0], linalg.cholesky(s)

    for seed in range(3):
        a = drawn((4,), dtype, seed)
        s = a @ adjoint(a) + 1
        x, values, factor = (found.numpy() for found in f(Tensor(a)))
        assert np.allclose(a @ x, s)
        assert np.allclose(values, np.linalg.eigvalsh(s))
        assert np.allclose(factor, np.linalg.cholesky(s))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_do_not_grow_with_the_matrix(name, dtype):
    def counts(size):
        """Lines of the graph, loops unrolled nowhere, and kernels."""
        found = FUNCTIONS[name](Tensor(drawn((size,), dtype)).realize())
        return len(show(found.node).splitlines()), treadle.explain(found).split(" (")[0]

    small, large = counts(192), counts(256)
    assert abs(small[0] - large[0]) < 10  # some sizes need no padding
    assert small[1] == large[1]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: linalg.inv(Tensor.ones(2, 3)), ValueError, "square"),
        (lambda: linalg.inv(Tensor.ones(3)), ValueError, r"\(3,\)"),
        (lambda: linalg.inv(Tensor.ones(2, 2).half()), TypeError, "float32"),
        (lambda: linalg.det(Tensor([[1, 2], [3, 4]])), TypeError, "cast"),
        (lambda: linalg.solve(Tensor.eye(3), Tensor.ones(2, 2)), ValueError, "right-hand side"),
        (lambda: linalg.qr(Tensor.ones(2, 2), "full"), ValueError, "'full'"),
        (lambda: linalg.solve(Tensor.eye(2), 3), TypeError, "solve is for tensors"),
        (
            lambda: linalg.solve_ex(Tensor.eye(2), Tensor.ones(2), check_errors=True),
            NotImplementedError,
            "check_errors",
        ),
        (
            lambda: grad(lambda a: linalg.qr(a, "complete")[0].sum())(Tensor.ones(3, 2)),
            NotImplementedError,
            "mode='reduced'",
        ),
        (
            lambda: grad(lambda a: linalg.svd(a)[0].sum())(Tensor.ones(3, 2)),
            NotImplementedError,
            "full_matrices=False",
        ),
        (
            lambda: jvp(linalg.svd, (Tensor.ones(2, 3),), (Tensor.ones(2, 3),)),
            NotImplementedError,
            "full_matrices=False",
        ),
        (lambda: linalg.eigvals(Tensor.eye(2)), NotImplementedError, "complex"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("dtype", WIDE)
def test_vectors_beyond_k_that_do_not_count_have_no_derivative_to_miss(dtype):
    a = Tensor(numbers((4, 2), dtype, 5))

    def value(a, is_full):
        u, values, vh = linalg.svd(a, is_full)
        return (abs(u[:, :2]) ** 3).sum() + values.sin().sum() + (abs(vh) ** 2)[0, 1]

    found = [grad(lambda a, full=full: value(a, full))(a).numpy() for full in (True, False)]
    assert np.allclose(*found, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [0, 1e-3, 1, 100])
def test_exponentials(dtype, scale):
    turn = np.asarray([[0, -scale], [scale, 0]], dtype)
    wanted = [[np.cos(scale), -np.sin(scale)], [np.sin(scale), np.cos(scale)]]
    tolerance = 64 * np.finfo(dtype).eps * max(scale, 1)
    batch = np.stack([turn, np.zeros_like(turn)])  # which needs no squaring
    found = linalg.matrix_exp(Tensor(batch)).numpy()
    assert np.allclose(found[0], wanted, rtol=0, atol=tolerance)
    assert np.array_equal(found[1], np.eye(2))


@pytest.mark.parametrize("dtype", WIDE)
def test_factors_solve_systems(dtype):
    a, b = drawn((2, 4), dtype), drawn((2, 4), dtype, 1)
    p, lower, upper = linalg.lu(Tensor(a))
    close(p @ lower @ upper, a, 16)
    factors = linalg.lu_factor(Tensor(a))
    for left in (True, False):
        x = linalg.lu_solve(*factors, Tensor(b), left=left).numpy()
        close(Tensor(a @ x if left else x @ a), b, 64 * np.abs(x).max())
    s = positive((2, 4), dtype)
    x = Tensor(b).cholesky_solve(linalg.cholesky(Tensor(s))).numpy()
    close(Tensor(s @ x), b, 64 * np.abs(x).max() * np.abs(s).max())


def test_least_squares_of_a_matrix_that_is_not_of_full_rank():
    a = np.asarray([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    x, _, rank, _ = linalg.lstsq(Tensor(a), Tensor([[2.0], [2.0], [5.0]]).double())
    close(x, np.asarray([[1.0], [1.0]]), 8)
    assert rank.item() == 1


ILL = {
    "hilbert": lambda n: 1 / (1 + np.add.outer(np.arange(n), np.arange(n))),
    "graded": lambda n: np.outer(*[np.logspace(-6, 6, n)] * 2) * (np.eye(n) + 0.1),
    "of rank 1": lambda n: np.ones((n, n)),
    "of rank 2": lambda n: np.add.outer(np.arange(n), np.arange(n)) / n,
    "zero": lambda n: np.zeros((n, n)),
    "diagonal": lambda n: np.diag(np.logspace(-12, 12, n)),
    "two values": lambda n: np.diag(np.where(np.arange(n) % 2, 1.0, -2.0)),
    "tiny": lambda n: np.full((n, n), 1e-30) * (1 + np.eye(n)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("size", "dtype"), [(7, "float64"), (100, "float64"), (70, "complex128")])
@pytest.mark.parametrize("name", ILL)
def test_matrices_of_difficult_kinds(name, size, dtype):
    turns = np.exp(1j * np.arange(size)) if dtype == "complex128" else np.ones(size)
    a = ILL[name](size) * np.outer(turns, turns.conj())
    one = np.eye(size, dtype=dtype)
    scale = np.abs(a).max() * size
    values, vectors = linalg.eigh(Tensor(a))
    close(values, np.linalg.eigvalsh(a), scale)
    close(Tensor((vectors.numpy() * values.numpy()) @ adjoint(vectors.numpy())), a, scale)
    close(vectors.mH @ vectors, one, size)
    u, sizes, vh = linalg.svd(Tensor(a))
    close(sizes, np.linalg.svd(a, compute_uv=False), scale)
    close(Tensor((u.numpy() * sizes.numpy()) @ vh.numpy()), a, scale)
    for turned in (u, vh):
        close(turned.mH @ turned, one, size)
    p, lower, upper = (part.numpy() for part in linalg.lu(Tensor(a)))
    close(Tensor(p @ lower @ upper), a, scale)
    assert np.abs(lower).max() <= (1 if dtype == "float64" else 2**0.5)  # |re| + |im| chooses
    q, r = linalg.qr(Tensor(a))
    close(Tensor(q.numpy() @ r.numpy()), a, scale)
    close(q.mH @ q, one, size)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("size", "dtype"), [(5, "float64"), (100, "float64"), (5, "complex128")])
def test_a_matrix_that_is_not_finite_spoils_no_other(size, dtype):
    a = positive((3, size), dtype)
    a[1, size // 2, size // 2] = np.nan
    calls = {
        "cholesky": linalg.cholesky,
        "inv": linalg.inv,
        "slogdet": lambda a: linalg.slogdet(a)[1],
        "qr": lambda a: linalg.qr(a)[1],
        "eigvalsh": linalg.eigvalsh,
        "svdvals": linalg.svdvals,
    }
    for name, call in calls.items():
        found = call(Tensor(a)).numpy()
        assert np.isnan(found[1]).any(), name
        for place in (0, 2):
            alone = call(Tensor(a[place])).numpy()
            assert np.allclose(found[place], alone, rtol=1e-10), name


@pytest.mark.parametrize("dtype", WIDE)
def test_nothing(dtype):
    for shape in [(0, 0), (0, 3, 3), (2, 0, 0), (0, 100, 100)]:
        a = Tensor(np.zeros(shape, dtype))
        calls = (linalg.cholesky, linalg.inv, linalg.det, linalg.eigvalsh, linalg.svdvals)
        for call in (*calls, linalg.matrix_exp, lambda a: linalg.qr(a)[0]):
            call(a).numpy()


def test_tensors_as_matrices():
    a, b = np.random.default_rng(6).standard_normal((2, 3, 6)), np.ones((2, 3))
    close(linalg.tensorsolve(Tensor(a), Tensor(b)), np.linalg.tensorsolve(a, b), 64)
    turned = a.reshape(2, 6, 3)
    close(
        linalg.tensorsolve(Tensor(turned), Tensor(b.reshape(2, 3)), dims=(1,)),
        np.linalg.tensorsolve(turned, b, axes=(1,)),
        64,
    )
    close(linalg.tensorinv(Tensor(a)), np.linalg.tensorinv(a), 64)
    for call in (lambda: linalg.tensorinv(Tensor(a), 1), lambda: linalg.tensorinv(Tensor(a), 0)):
        with pytest.raises(ValueError, match="ind"):
            call()
    with pytest.raises(ValueError, match="unknown"):
        linalg.tensorsolve(Tensor(a), Tensor(b[0]))


def test_matrices_from_vectors():
    x = np.asarray([[0.0, 2.0, -3.0]])
    for count in (None, 0, 1, 2, 5):
        wanted = np.vander(x[0], count, increasing=True)[None]
        assert np.array_equal(linalg.vander(Tensor(x), N=count).numpy(), wanted)
    slope = grad(lambda x: linalg.vander(x, N=4).sum())(Tensor(x)).numpy()
    assert np.allclose(slope, 1 + 2 * x + 3 * x**2)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("count", [0, 2, 3])
def test_products_of_reflections(count, dtype):
    a, tau = numbers((2, 5, 3), dtype, 8), numbers((2, count), dtype, 9)
    found = linalg.householder_product(Tensor(a), Tensor(tau)).numpy()
    for each, scales, got in zip(a, tau, found, strict=True):
        product = np.eye(5)
        for place, scale in enumerate(scales):
            v = np.where(np.arange(5) > place, each[:, place], np.arange(5) == place)
            product = product @ (np.eye(5) - scale * np.outer(v, v.conj()))
        assert np.allclose(got, product[:, :3])
    with pytest.raises(ValueError, match="tau"):
        linalg.householder_product(Tensor(a), Tensor(tau[0]))
