"""Kernels touch no memory but their own.

Every buffer of the engine, those for root scratch too, lies here between two zones of known bytes,
which are looked at after each run. Memory is new each time and full of NaN, so a read of what
nobody has written shows in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from treadle import Tensor, Variable
from treadle.engine.storage import Allocator
from treadle.host import ALIGNMENT

ZONE = 4096  # bytes on either side of a buffer
MARK = 0xFF  # NaN in every float dtype
CASES = 40  # of each kind in the fuzz


class Guards:
    """The buffers that were handed out since the last look."""

    def __init__(self) -> None:
        self.given: list[tuple[np.ndarray, int, int]] = []

    def take(self, nbytes: int) -> tuple[np.ndarray, int]:
        """Memory of exactly `nbytes` between two zones, and its address."""
        raw = np.full(nbytes + 2 * ZONE + ALIGNMENT, MARK, np.uint8)
        start = ZONE + -(raw.ctypes.data + ZONE) % ALIGNMENT
        self.given.append((raw, start, nbytes))
        return raw[start : start + nbytes], raw.ctypes.data + start

    def look(self, what: str) -> None:
        """Nothing beside the buffers has changed."""
        given, self.given = self.given, []
        for raw, start, nbytes in given:
            changed = np.flatnonzero(raw != MARK) - start
            outside = changed[(changed < 0) | (changed >= nbytes)]
            assert not outside.size, (
                f"{what}: {outside.size} bytes were written beside a buffer of {nbytes}, from "
                f"{outside[0]} to {outside[-1]}"
            )


@pytest.fixture
def guards(monkeypatch: pytest.MonkeyPatch) -> Iterator[Guards]:
    """Zones around every buffer; they are looked at once more at the end."""
    found = Guards()
    monkeypatch.setattr(Allocator, "take", lambda self, nbytes: found.take(nbytes))
    monkeypatch.setattr(Allocator, "give", lambda self, memory, address: None)
    yield found
    found.look("at the end")


Case = tuple[str, list[np.ndarray], Callable[..., Tensor]]


def run(guards: Guards, case: Case, device: str = "CPU") -> list[np.ndarray]:
    """The result of a case and the gradient of each array, with a look after each run."""
    what, arrays, function = case
    given = [Tensor(array, requires_grad=True, device=device) for array in arrays]
    result = function(*given)
    found = [result.numpy()]
    guards.look(what)
    (result * result).sum().backward()
    for place, x in enumerate(given):
        assert x.grad is not None
        found.append(x.grad.numpy())
        guards.look(f"{what}, gradient {place}")
    for array in found:
        assert not np.isnan(array).any(), f"{what}: there is NaN in a result"
    return found


# ---- random cases --------------------------------------------------------------------------------
Random = np.random.Generator


def pick(random: Random, low: int, high: int) -> int:
    """A number from low to high, both included."""
    return int(random.integers(low, high + 1))


def picks(random: Random, low: int, high: int) -> list[int]:
    """One for each of two axes."""
    return [pick(random, low, high) for _ in range(2)]


def normal(random: Random, *shape: int) -> np.ndarray:
    dtype = (np.float32, np.float64)[pick(random, 0, 1)]
    return random.standard_normal(shape).astype(dtype)


def pair(random: Random, first: tuple[int, ...], second: tuple[int, ...]) -> list[np.ndarray]:
    """Two arrays of the same dtype."""
    a = normal(random, *first)
    return [a, random.standard_normal(second).astype(a.dtype)]


def convolution(random: Random) -> Case:
    groups, kernel = pick(random, 1, 3), picks(random, 1, 4)
    options = {
        "stride": picks(random, 1, 3),
        "padding": picks(random, 0, 3),
        "dilation": picks(random, 1, 2),
        "groups": groups,
    }
    channels = groups * pick(random, 1, 3)
    size = [pick(random, 2, 5) + 2 * (k - 1) for k in kernel]
    shape = (pick(random, 1, 3), channels, *size)
    weights = (groups * pick(random, 1, 3), channels // groups, *kernel)
    arrays = pair(random, shape, weights)
    return (
        f"conv2d {shape} {weights} {options} {arrays[0].dtype}",
        arrays,
        lambda x, w: x.conv2d(w, None, **options),
    )


def transposed_convolution(random: Random) -> Case:
    groups, kernel, stride = pick(random, 1, 3), picks(random, 1, 4), picks(random, 1, 3)
    size = picks(random, 2, 6)
    options = {
        "stride": stride,
        "padding": [
            pick(random, 0, min(k - 1, ((n - 1) * s + k - 1) // 2))
            for n, s, k in zip(size, stride, kernel)
        ],
        "output_padding": [pick(random, 0, s - 1) for s in stride],
        "groups": groups,
    }
    channels = groups * pick(random, 1, 3)
    shape = (pick(random, 1, 3), channels, *size)
    weights = (channels, pick(random, 1, 3), *kernel)
    arrays = pair(random, shape, weights)
    return (
        f"conv_transpose2d {shape} {weights} {options} {arrays[0].dtype}",
        arrays,
        lambda x, w: x.conv_transpose2d(w, None, **options),
    )


def pooling(random: Random) -> Case:
    kernel = picks(random, 2, 4)
    options = {
        "stride": picks(random, 1, 3),
        "padding": [pick(random, 0, k // 2) for k in kernel],
    }
    name = ("max_pool2d", "avg_pool2d")[pick(random, 0, 1)]
    x = normal(random, pick(random, 1, 3), pick(random, 1, 4), *picks(random, 4, 11))
    return (
        f"{name} {x.shape} {kernel} {options} {x.dtype}",
        [x],
        lambda x: getattr(x, name)(kernel, **options),
    )


def product(random: Random) -> Case:
    rows, middle, columns = (pick(random, 1, 70) for _ in range(3))
    batch = (pick(random, 1, 4),)[: pick(random, 0, 1)]
    turned = pick(random, 0, 1)
    second = (*batch, columns, middle) if turned else (*batch, middle, columns)
    arrays = pair(random, (*batch, rows, middle), second)
    return (
        f"matmul {arrays[0].shape} {second} turned {turned} {arrays[0].dtype}",
        arrays,
        lambda x, y: x @ (y.transpose(-1, -2) if turned else y),
    )


def reduction(random: Random) -> Case:
    names = ("softmax", "log_softmax", "sum", "max", "mean", "cumsum")
    name, axis = names[pick(random, 0, len(names) - 1)], pick(random, 0, 2)
    long = pick(random, 0, 2)
    shape = tuple(pick(random, 1, 150 if n == long else 9) for n in range(3))
    x = normal(random, *shape)
    return f"{name} {axis} of {shape} {x.dtype}", [x], lambda x: getattr(x, name)(axis)


KINDS = [convolution, transposed_convolution, pooling, product, reduction]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_random_cases(kind: Callable[[Random], Case], guards: Guards) -> None:
    random = np.random.default_rng(7)
    for _ in range(CASES):
        run(guards, kind(random))


# ---- panels that begin below 0: the border of an image is packed once for all tasks --------------
def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


BORDERS: list[Case] = [
    (
        "depthwise",
        [ones(2, 3, 5, 5), ones(6, 1, 3, 2)],
        lambda x, w: x.conv2d(w, None, stride=[1, 3], padding=[1, 2], groups=3, dilation=[1, 2]),
    ),
    (
        "one channel",
        [ones(2, 1, 5, 9), ones(2, 1, 3, 2)],
        lambda x, w: x.conv2d(w, None, stride=[1, 3], padding=[1, 3], dilation=[1, 2]),
    ),
    (
        "transposed",
        [ones(3, 6, 4, 5), ones(6, 2, 4, 2)],
        lambda x, w: x.conv_transpose2d(
            w, None, stride=2, padding=[0, 2], output_padding=[1, 0], groups=2
        ),
    ),
]


@pytest.mark.parametrize("case", BORDERS, ids=[case[0] for case in BORDERS])
def test_border(case: Case, guards: Guards) -> None:
    """On every backend; INTERP knows the size of each buffer and refuses what lies outside."""
    expected = run(guards, case, "INTERP")
    for device in ("CPU", "C"):
        for found, want in zip(run(guards, case, device), expected):
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_border_of_unknown_size(guards: Guards) -> None:
    length = Variable("length_of_border", 1, 40)
    random = np.random.default_rng(3)
    array, weights = normal(random, 40, 3, 9), random.standard_normal((4, 3, 3))
    for size in (40, 1, 17):
        x, w = Tensor(array), Tensor(weights.astype(array.dtype))
        found = x[: length.bind(size)].conv1d(w, None, stride=2, padding=2).numpy()
        guards.look(f"{size} images")
        want = x[:size].conv1d(w, None, stride=2, padding=2).numpy()
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
