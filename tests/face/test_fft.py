"""`treadle.fft` as users call it: types, derivatives, transforms, capturing, errors."""

import numpy as np
import pytest

import treadle
from treadle import Tensor, Variable, fft, grad, jit, vmap
from treadle.ir.node import toposort


def drawn(shape, is_real, seed=0):
    """Random numbers in float64 or complex128."""
    rng = np.random.default_rng(seed)
    re, im = rng.standard_normal((2, *shape))
    return re if is_real else re + 1j * im


def close(ours, wanted, eps=2.0**-52):
    """Within a few roundings for each step, relative to the norm of all."""
    got = ours.numpy()
    assert got.shape == wanted.shape
    error = np.linalg.norm((got - wanted).ravel())
    assert error <= 20 * eps * np.linalg.norm(wanted.ravel())


@pytest.mark.parametrize("n", [5, 96, 131, 10007])
def test_values(n):
    z = drawn((2, n), False)
    close(fft.fft(Tensor(z)), np.fft.fft(z))
    narrow = z.astype("complex64")
    close(fft.ifft(Tensor(narrow), axis=-1), np.fft.ifft(narrow), 2.0**-23)
    x = drawn((n, 2), True)
    spectrum = fft.rfft(Tensor(x), dim=0)
    close(spectrum, np.fft.rfft(x, axis=0))
    close(fft.irfft(spectrum, n, 0), x)


def test_types():
    for dtype in ("int32", "bool", "float16", "float32"):
        x = np.arange(6).astype(dtype)
        got = fft.fft(Tensor(x))
        assert str(got.dtype) == "complex64"
        close(got, np.fft.fft(x.astype("float64")), 2.0**-23)
        assert fft.irfft(Tensor(x)).dtype is treadle.float32
    assert str(fft.fft(Tensor(np.ones(3))).dtype) == "complex128"
    assert fft.irfft(Tensor(np.ones(3))).dtype is treadle.float64
    assert fft.fftn(Tensor.ones(2), dim=()).tolist() == [1, 1]


def test_a_quarter_turn_is_exact():
    """Roots of unity come from integers: where the exact result is whole it is whole here."""
    for n in (4, 8, 16, 64, 256):
        impulse = np.zeros(n)
        impulse[n // 4] = 1
        wanted = np.array([1, -1j, -1, 1j])[np.arange(n) % 4]
        assert np.array_equal(fft.fft(Tensor(impulse)).numpy(), wanted)


def test_no_elements_but_in_the_batch():
    assert fft.fft(Tensor.zeros(0, 4)).shape == (0, 4)
    assert fft.rfft(Tensor.zeros(3, 0, 4), dim=2).shape == (3, 0, 3)
    assert fft.irfft(Tensor.zeros(0, 1025)).shape == (0, 2048)


def test_frequencies_and_shifts():
    for n in (1, 2, 5, 6):
        for d in (1.0, 0.3):
            for name in ("fftfreq", "rfftfreq"):
                wanted = getattr(np.fft, name)(n, d=d)
                got = getattr(fft, name)(n, d=d, dtype="float64").numpy()
                np.testing.assert_allclose(got, wanted, rtol=1e-15)
                assert getattr(fft, name)(n, d=d).dtype is treadle.float32
        x = drawn((3, n), False)
        for name in ("fftshift", "ifftshift"):
            ours, theirs = getattr(fft, name), getattr(np.fft, name)
            assert np.array_equal(ours(Tensor(x)).numpy(), theirs(x))
            assert np.array_equal(ours(Tensor(x), axes=-1).numpy(), theirs(x, axes=-1))
            assert np.array_equal(ours(Tensor(x), dim=(0,)).numpy(), theirs(x, axes=(0,)))


@pytest.mark.parametrize("n", [12, 100, 134])
def test_derivatives_are_transforms(n):
    """Of sum(w |fft x|**2) with real x: 2 n real(ifft(w fft(x)))."""
    x, w = drawn((n,), True), drawn((n,), True, seed=1)

    def energy(y):
        spectrum = fft.fft(y)
        return (Tensor(w) * (spectrum.real**2 + spectrum.imag**2)).sum()

    wanted = 2 * n * np.fft.ifft(w * np.fft.fft(x)).real
    np.testing.assert_allclose(grad(energy)(Tensor(x)).numpy(), wanted, atol=1e-11)
    twice = grad(lambda y: (grad(energy)(y) ** 2).sum())(Tensor(x)).numpy()
    again = 2 * n * np.fft.ifft(w * np.fft.fft(2 * wanted)).real
    np.testing.assert_allclose(twice, again, rtol=1e-9, atol=1e-9 * np.abs(again).max())


def test_inside_of_transforms():
    x = drawn((3, 96), False)
    wanted = np.fft.fft(x)
    close(vmap(fft.fft)(Tensor(x)), wanted)
    captured = jit(lambda y: fft.fft(y))
    for scale in (1, 2, 3):
        close(captured(Tensor(scale * x)), scale * wanted)


def test_a_batch_of_symbolic_size():
    rows = Variable("rows", 1, 8).bind(3)
    x = drawn((8, 96), True)
    got = fft.rfft(Tensor(x)[:rows]).numpy()
    np.testing.assert_allclose(got, np.fft.rfft(x[:3]), atol=1e-13)


def test_the_program_grows_with_the_logarithm():
    """A step more for a factor of 16, whatever the length."""

    def size(n):
        return len(toposort([fft.fft(Tensor.ones(n) + 1j).node]))

    sizes = [size(2**power) for power in (12, 16, 20)]
    assert max(np.diff(sizes)) < 130


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fft.fft(Tensor(1.0)), ValueError, "fft: a 0-d tensor has no dimension"),
        (lambda: fft.fft(Tensor.ones(3), n=0), ValueError, "at least one element, not 0"),
        (lambda: fft.fft(Tensor.ones(0)), ValueError, "at least one element, not 0"),
        (lambda: fft.fft(Tensor.ones(3), norm="half"), ValueError, "'ortho' or 'forward'"),
        (lambda: fft.fftn(Tensor.ones(3), dim=(), norm="x"), ValueError, "not 'x'"),
        (lambda: fft.fft(Tensor.ones(3), dim=1), IndexError, "dim=1 is out of range"),
        (lambda: fft.fft(Tensor.ones(3), n=2.5), TypeError, "a size is an int"),
        (lambda: fft.rfft(Tensor.ones(3) + 1j), TypeError, "rfft is for real tensors"),
        (lambda: fft.irfft(Tensor.ones(1)), ValueError, "give their number"),
        (lambda: fft.fftn(Tensor.ones(2, 2), dim=(0, -2)), ValueError, "same dimension twice"),
        (lambda: fft.fftn(Tensor.ones(2, 2), s=(2,), dim=(0, 1)), ValueError, "1 lengths for 2"),
        (lambda: fft.fftn(Tensor.ones(2), s=(2, 2)), ValueError, "2 lengths for shape"),
        (lambda: fft.rfftn(Tensor.ones(2), dim=()), ValueError, "at least one dimension"),
        (lambda: fft.fft2(Tensor.ones(4)), IndexError, "dim=-2 is out of range"),
        (lambda: fft.fft(Tensor.ones(3), norm=[1]), ValueError, r"not \[1\]"),
        (lambda: Tensor.ones(8).stft(4.0), TypeError, "n_fft is an int, not 4.0"),
        (lambda: Tensor.ones(8).stft(4, 0), ValueError, "hop_length=0"),
        (lambda: Tensor.ones(8).stft(4, win_length=5), ValueError, "at most as long as a frame"),
        (lambda: Tensor.ones(2, 2, 8).stft(4), ValueError, "a signal, or a batch of them"),
        (lambda: Tensor.ones(3).stft(4, center=False), ValueError, "a frame of 4 does not fit"),
        (lambda: Tensor.ones(8).stft(4, window=Tensor.ones(3)), ValueError, "has shape"),
        (lambda: (Tensor.ones(8) + 1j).stft(4, onesided=True), ValueError, "onesided=False"),
        (lambda: Tensor.ones(3, 5).istft(4), ValueError, "for a complex spectrum"),
        (lambda: (Tensor.ones(4, 5) + 1j).istft(8), ValueError, "has 5 frequencies, not the 4"),
        (lambda: treadle.hann_window(-1), ValueError, "at least 0"),
        (lambda: treadle.hann_window(4, dtype="int64"), TypeError, "floating-point"),
        (lambda: treadle.kaiser_window(4, beta=1e4), ValueError, "beta is at most 600"),
        (lambda: fft.fftfreq(0), ValueError, "at least 1"),
        (lambda: fft.fftfreq(4, dtype="int32"), TypeError, "floating-point"),
        (lambda: fft.fft([1.0, 2.0]), TypeError, "write Tensor"),
        (lambda: fft.dct, AttributeError, "no attribute 'dct'"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_symbolic_length_is_refused():
    count = Variable("count", 1, 8).bind(4)
    with pytest.raises(ValueError, match="is count"):
        fft.fft(Tensor.ones(8)[:count])
    assert fft.fft(Tensor.ones(8)[:count], n=8).numpy()[0] == 4
