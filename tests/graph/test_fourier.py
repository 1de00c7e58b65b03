"""Fourier transforms of every length and by every argument, against NumPy in the wider type, by way
of the graph interpreter."""

import numpy as np
import pytest
from arrays import run, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle.fft  # noqa: F401  (fills the table)
from treadle.graph.fourier.lengths import radices, roomy
from treadle.graph.movement import stack
from treadle.graph.parts import complex_of, imag, real
from treadle.graph.public import FFT

# every small length; primes that are products and primes that are convolutions; powers; mixtures
SIZES = [*range(1, 131), 251, 256, 1000, 1009, 1024, 2 * 509, 3 * 5 * 7 * 11, 4096, 8191]
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MANY = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
OF_REAL = ("rfft", "ihfft", "rfftn", "rfft2")


def drawn(shape, is_real, dtype="float64", seed=0):
    """Random numbers, real or complex, whose parts have a dtype."""
    rng = np.random.default_rng(seed)
    re, im = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    return re if is_real else (re + 1j * im).astype(np.result_type(re, np.complex64))


def ours(name, x, *arguments, **named):
    """What a function of `treadle.fft` makes of an array."""
    node = complex_of(tensor(x.real), tensor(x.imag)) if np.iscomplexobj(x) else tensor(x)
    y = FFT[name](node, *arguments, **named)
    if not y.dtype.is_complex:
        return run(y)
    re, im = run(stack([real(y), imag(y)]))
    return re + 1j * im


def close(got, wanted, dtype="float64", scale=1.0):
    """The error, relative to the norm of all, is a few roundings for each step."""
    assert got.shape == wanted.shape
    assert got.real.dtype == np.dtype(dtype)
    error = np.linalg.norm((got - wanted).ravel())
    steps = 2 + np.log2(max(1, wanted.size))
    assert error <= scale * steps * EPSILON[dtype] * np.linalg.norm(wanted.ravel())


def test_lengths_are_products():
    for n in (*range(1, 300), 2**20, 10**6, 3**12, 1009 * 1013):
        assert np.prod(radices(n)) == n
        assert roomy(n) >= n
    assert radices(2**20) == (16,) * 5
    assert radices(1009) == (1009,)


@pytest.mark.parametrize("n", SIZES)
def test_every_length(n):
    """In float32 by the transforms of complex numbers, in float64 by those of real ones."""
    z = drawn((2, n), False, "float32", n)
    close(ours("fft", z), np.fft.fft(z.astype("complex128")), "float32")
    x = drawn((n,), True, "float64", n)
    spectrum = ours("rfft", x)
    close(spectrum, np.fft.rfft(x))
    close(ours("irfft", spectrum, n), x, scale=2.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ONE)
def test_one_dimension(name, dtype):
    for n in (1, 2, 3, 16, 81, 96, 134):
        x = drawn((3, n, 2), name in OF_REAL, dtype, n)
        wide = x.astype("float64" if name in OF_REAL else "complex128")
        for norm in ("backward", "ortho", "forward", None):
            for length in (n + 3, max(1, n - 2), None):
                if length is None and n == 1 and name in ("irfft", "hfft"):
                    continue
                wanted = getattr(np.fft, name)(wide, n=length, axis=-2, norm=norm)
                close(ours(name, x, length, 1, norm), wanted, dtype)


@pytest.mark.parametrize("name", MANY)
def test_several_dimensions(name):
    x = drawn((3, 4, 6), name in OF_REAL)
    theirs = getattr(np.fft, name)
    close(ours(name, x), theirs(x))
    for s, axes, norm in (
        ((5, 3), (0, 1), "ortho"),
        ((4, 7), (-1, 0), "forward"),
        ((3, 6), (1, 2), "backward"),
        (None, (2, 0), None),
    ):
        close(ours(name, x, s=s, axes=axes, norm=norm), theirs(x, s=s, axes=axes, norm=norm))
    if name.endswith("n"):
        close(ours(name, x, s=(4,)), theirs(x, s=(4,), axes=(-1,)))
        close(ours(name, x, dim=1), theirs(x, axes=(1,)))
        close(ours(name, x, (-1, 4), (0, 1)), theirs(x, (3, 4), (0, 1)))


def test_hermitian_transforms_of_several_dimensions():
    """By their definition, with NumPy's of one dimension."""
    x = drawn((3, 4, 5), False)
    first = np.fft.fft(np.fft.fft(x, axis=0), axis=1)
    close(ours("hfftn", x), np.fft.hfft(first, axis=2))
    close(ours("hfft2", x, s=(4, 7)), np.fft.hfft(np.fft.fft(x, axis=1), n=7, axis=2))
    real = drawn((3, 4, 5), True)
    last = np.fft.ihfft(real, axis=2)
    close(ours("ihfft2", real), np.fft.ifft(last, axis=1))
    close(ours("ihfftn", real), np.fft.ifft(np.fft.ifft(last, axis=1), axis=0))


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 300), st.integers(0, 99))
def test_a_product_of_transforms_is_a_convolution(n, seed):
    a, b = drawn((n,), True, seed=seed), drawn((n,), True, seed=seed + 1)
    product = ours("irfft", ours("rfft", a) * ours("rfft", b), n)
    turned = np.stack([np.roll(b, k) for k in range(n)], axis=1)
    np.testing.assert_allclose(product, turned @ a, atol=1e-13 * n)
