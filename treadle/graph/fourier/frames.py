"""Transforms of overlapping pieces of a signal, its *frames*: a spectrum that changes in time, and
the signal that has such a one."""

from __future__ import annotations

from treadle.graph import shapes
from treadle.graph.build import const, expand, pad, reduce, unwindow
from treadle.graph.build import window as windows_of
from treadle.graph.elementwise import div, mul
from treadle.graph.fourier import axes
from treadle.graph.fourier.transform import padded
from treadle.graph.movement import narrow, pad_method, stack, transpose
from treadle.graph.parts import imag, real
from treadle.graph.public import public
from treadle.graph.shapes import text
from treadle.ir.node import Node


def _sizes(
    name: str, n_fft: int, hop_length: int | None, win_length: int | None, taper: Node | None
) -> tuple[int, int]:
    """The distance of frames, and the length of the window."""
    for what, given in (("n_fft", n_fft), ("hop_length", hop_length), ("win_length", win_length)):
        if given is not None and type(given) is not int:
            raise TypeError(f"{name}: {what} is an int, not {shapes.words(given)}")
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if n_fft < 1 or hop < 1 or not 1 <= width <= n_fft:
        raise ValueError(
            f"{name}: n_fft={n_fft}, hop_length={hop}, win_length={width}: all are at least 1, and "
            "a window is at most as long as a frame"
        )
    if taper is not None and taper.shape != (width,):
        raise ValueError(f"{name}: the window has shape {text(taper.shape)}, not ({width},)")
    return hop, width


def _taper(given: Node | None, n_fft: int, width: int, like: Node) -> Node:
    """The window in the middle of a frame, with zeros around it; ones if none is given."""
    taper = const(1, like.dtype.real, (width,)) if given is None else given
    before = (n_fft - width) // 2
    return pad(taper, [(before, n_fft - width - before)])


@public("stft", source="PyTorch", namespace=True)
def stft(
    x: Node,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Node | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool = True,
) -> Node:
    """The short-time Fourier transform of signals (t,) or (batch, t): (.., frequencies, frames).

    Frames of n_fft elements begin every `hop_length` (n_fft // 4), and are multiplied by a window
    of `win_length`. center: frame k has its middle at k * hop_length; the signal is padded by
    `pad_mode` (as in `pad`) at its ends. normalized: divided by the root of n_fft. onesided (unless
    something is complex): the n_fft // 2 + 1 frequencies of real signals. return_complex=False:
    the parts, as a last dimension.

    >>> Tensor.ones(16).stft(4, 2, window=treadle.hann_window(4)).shape
    (3, 9)
    """
    if not 1 <= len(x.shape) <= 2:
        raise ValueError(f"stft is for a signal, or a batch of them, not for {text(x.shape)}")
    hop, width = _sizes("stft", n_fft, hop_length, win_length, window)
    signals = x if x.dtype.is_inexact else axes.floating(x)
    if center:
        signals = pad_method(signals, (n_fft // 2, n_fft // 2), pad_mode)
    if shapes.at_most(n_fft, signals.shape[-1]) is False:
        raise ValueError(
            f"stft: a frame of {n_fft} does not fit a signal of {shapes.dim_text(x.shape[-1])}"
        )
    framed = _frames(signals, n_fft, hop)
    tapered = (
        framed
        if window is None and width == n_fft
        else mul(framed, _taper(window, n_fft, width, signals))
    )
    half = not tapered.dtype.is_complex if onesided is None else onesided
    if half and tapered.dtype.is_complex:
        raise ValueError("stft: a complex signal has two sides of frequencies: onesided=False")
    function = axes.rfft if half else axes.fft
    found = transpose(function(tapered, norm="ortho" if normalized else None), -1, -2)
    return found if return_complex else stack([real(found), imag(found)], dim=-1)


def _frames(x: Node, size: int, hop: int) -> Node:
    """(.., t) -> (.., frames, size)."""
    return windows_of(x, len(x.shape) - 1, size, hop)


def _overlapped(x: Node, hop: int) -> Node:
    """The sum of frames (.., frames, size), each at its place: the adjoint of `_frames`."""
    axis, size = len(x.shape) - 2, x.shape[-1]
    whole = shapes.add(shapes.multiply(shapes.subtract(x.shape[-2], 1), hop), size)
    return reduce("add", unwindow(x, axis, whole, hop, 1), axis + 1)


@public("istft", source="PyTorch", namespace=True)
def istft(
    x: Node,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Node | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Node:
    """The signals whose `stft`, with the same arguments, is nearest to x (.., frequencies, frames):
    frames are multiplied by the window again, summed at their places, and divided by the sum of
    squares of the windows there. Where that is 0, so is the divisor: NaN or inf.

    length: of the result; it is cut or has zeros at its end. return_complex: of two-sided
    spectra; without it half of such a one is read, and the other taken for its conjugate.
    Source: Griffin and Lim, IEEE Trans. Acoust. Speech Signal Process. 32, 1984.

    >>> spectrum = Tensor([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]).stft(4, 2)
    >>> spectrum.istft(4, 2).round().tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    """
    if not 2 <= len(x.shape) <= 3 or not x.dtype.is_complex:
        raise ValueError(
            "istft is for a complex spectrum (frequencies, frames), or a batch of them, not for "
            f"{shapes.words(x)}"
        )
    hop, width = _sizes("istft", n_fft, hop_length, win_length, window)
    half = x.shape[-2] != n_fft if onesided is None else onesided
    if half and return_complex:
        raise ValueError("istft: what has one side of its frequencies is real: onesided=False")
    if x.shape[-2] != (n_fft // 2 + 1 if half else n_fft):
        raise ValueError(
            f"istft: n_fft={n_fft} with onesided={half} has {n_fft // 2 + 1 if half else n_fft} "
            f"frequencies, not the {shapes.dim_text(x.shape[-2])} of {text(x.shape)}"
        )
    norm = "ortho" if normalized else None
    spectra = transpose(x, -1, -2)
    if return_complex:
        frames = axes.ifft(spectra, norm=norm)
    else:  # of a real signal half says all
        frames = axes.irfft(spectra, n_fft, norm=norm)
    taper = _taper(window, n_fft, width, x)
    signals = _overlapped(mul(frames, taper), hop)
    squares = _overlapped(expand(mul(taper, taper), (frames.shape[-2], n_fft)), hop)
    found = div(signals, squares)
    axis, whole = len(found.shape) - 1, found.shape[-1]
    start = n_fft // 2 if center else 0
    end = shapes.subtract(whole, start) if length is None else shapes.least(start + length, whole)
    kept = narrow(found, axis, start, end)
    if length is None or shapes.same(kept.shape[-1], length):
        return kept
    return padded(kept, 0, shapes.subtract(length, kept.shape[-1]), axis)
