"""`treadle.fft`, the short-time transform and windows against PyTorch, gradients included."""

import numpy as np
import pytest
from beside import value_and_gradient

import treadle
from treadle import Tensor

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")

RNG = np.random.default_rng(31)
REAL = RNG.normal(size=(2, 3, 6))
COMPLEX = REAL + 1j * RNG.normal(size=(2, 3, 6))
OF_REAL = ("rfft", "ihfft", "rfft2", "ihfft2", "rfftn", "ihfftn")
OTHERS = (
    "fft", "ifft", "irfft", "hfft", "fft2", "ifft2", "irfft2", "hfft2", "fftn", "ifftn", "irfftn",
    "hfftn", "fftshift", "ifftshift",
)  # fmt: skip


@pytest.mark.parametrize("name", (*OTHERS, *OF_REAL))
def test_transforms(name):
    ours, theirs = getattr(treadle.fft, name), getattr(torch.fft, name)
    array = REAL if name in OF_REAL or "shift" in name else COMPLEX
    value_and_gradient(ours, theirs, array)
    if name in ("fft", "ifft2", "irfft"):
        value_and_gradient(ours, theirs, REAL)
    if name in ("fft", "irfft", "ihfft2", "hfftn", "ifftn", "rfftn"):
        length, axes = (7, 1) if name.endswith("fft") else ((5, 7), (1, 2))

        def with_arguments(function):
            return lambda x: function(x, length, axes, norm="ortho")

        value_and_gradient(with_arguments(ours), with_arguments(theirs), array)


SETTINGS = (
    {},
    {"hop_length": 3, "center": False},
    {"win_length": 6, "normalized": True, "pad_mode": "constant"},
    {"onesided": False, "hop_length": 2},
)


@pytest.mark.parametrize("named", SETTINGS)
def test_spectra_in_time(named):
    signal = RNG.normal(size=(2, 40))
    window = np.hanning(named.get("win_length", 8) + 2)[1:-1]

    def there(function, place):
        made = place(window)
        return lambda x: function(x, 8, window=made, return_complex=True, **named)

    value_and_gradient(there(Tensor.stft, Tensor), there(torch.stft, torch.tensor), signal)
    with_no_window = {"win_length": 8, **named}
    ours = Tensor(signal[0]).stft(8, **with_no_window).numpy()
    theirs = torch.stft(torch.tensor(signal[0]), 8, return_complex=True, **with_no_window)
    np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-12)

    shape = theirs.shape
    back = {k: v for k, v in named.items() if k != "pad_mode"}
    spectrum = RNG.normal(size=(*shape, 2)) @ np.array([1, 1j])
    # PyTorch refuses what is longer where the window is 0 at its ends
    lengths = (None, 30) if "win_length" in named else (None, 30, 60)
    for length in lengths if back.get("center", True) else (None,):

        def inverse(function, place, length=length):
            made = place(window)
            return lambda x: function(x, 8, window=made, length=length, **back)

        value_and_gradient(
            inverse(Tensor.istft, Tensor), inverse(torch.istft, torch.tensor), spectrum
        )


def test_complex_signals_in_time():
    signal = COMPLEX.reshape(1, 36)
    spectrum = Tensor(signal).stft(8)
    wanted = torch.stft(torch.tensor(signal), 8, return_complex=True)
    np.testing.assert_allclose(spectrum.numpy(), wanted.numpy(), atol=1e-12)
    back = spectrum.istft(8, return_complex=True).numpy()
    np.testing.assert_allclose(back, signal, atol=1e-12)
    parts = Tensor(signal).stft(8, return_complex=False).numpy()
    np.testing.assert_allclose(parts, torch.view_as_real(wanted).numpy(), atol=1e-12)


@pytest.mark.parametrize(
    "name", ["hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"]
)
def test_windows(name):
    for n in (0, 1, 2, 7, 40):
        for periodic in (True, False):
            ours = getattr(treadle, name)(n, periodic, dtype="float64").numpy()
            theirs = getattr(torch, name)(n, periodic, dtype=torch.float64).numpy()
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)
            assert str(getattr(treadle, name)(n).dtype) == "float32"
    if name == "kaiser_window":
        ours = treadle.kaiser_window(9, False, 40.0, dtype="float64").numpy()
        np.testing.assert_allclose(ours, np.kaiser(9, 40.0), rtol=1e-12)
