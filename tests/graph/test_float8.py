"""float8_e4m3 and float8_e5m2: stored, moved, cast; computed with in float32 and rounded once."""

from __future__ import annotations

import numpy as np
import pytest

from treadle import Tensor, jit, scan
from treadle.ir.dtype import FLOAT8, FORMATS, from_compute, to_compute

NAMES = [dtype.name for dtype in FLOAT8]
CODES = np.arange(256, dtype=np.uint8)
RNG = np.random.default_rng(4)
NUMBERS = (RNG.normal(size=600) * np.exp(RNG.normal(size=600) * 5)).astype(np.float32)


@pytest.mark.parametrize("dtype", FLOAT8, ids=repr)
def test_every_code_is_its_own_nearest(dtype):
    values = to_compute(dtype, CODES)
    numbers = ~np.isnan(values)
    np.testing.assert_array_equal(from_compute(dtype, values)[numbers], CODES[numbers])
    assert np.isnan(values).sum() == (2 if dtype.name == "float8_e4m3" else 6)
    least = 1 << FORMATS[dtype].mantissa  # the code of the least normal number
    assert [values[1], values[least]] == (
        [2.0**-9, 2.0**-6] if dtype.name == "float8_e4m3" else [2.0**-16, 2.0**-14]
    )


@pytest.mark.parametrize("dtype", FLOAT8, ids=repr)
def test_the_nearest_code_ties_to_even(dtype):
    values = to_compute(dtype, CODES[: FORMATS[dtype].greatest + 1]).astype(np.float64)
    middles = (values[:-1] + values[1:]) / 2
    even = CODES[: len(middles)] + (CODES[: len(middles)] & 1)
    np.testing.assert_array_equal(from_compute(dtype, middles), even)
    below, above = np.nextafter(middles, 0), np.nextafter(middles, np.inf)
    np.testing.assert_array_equal(from_compute(dtype, below), CODES[: len(middles)])
    np.testing.assert_array_equal(from_compute(dtype, above), CODES[1 : len(middles) + 1])


def test_what_is_too_large():
    given = Tensor([448.0, 465.0, 1e9, np.inf, -np.inf, np.nan])
    assert given.cast("float8_e4m3").float().tolist()[:5] == [448.0] * 4 + [-448.0]
    assert given.cast("float8_e5m2").float().tolist()[2:5] == [np.inf, np.inf, -np.inf]
    assert Tensor([57344.0, 61440.0]).cast("float8_e5m2").float().tolist() == [57344.0, np.inf]
    assert all(np.isnan(given.cast(name).float().numpy()[5]) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("device", ["CPU", "INTERP"])
def test_devices_have_the_same_codes(name, device):
    dtype = FLOAT8[NAMES.index(name)]
    for numbers in (NUMBERS, NUMBERS.astype(np.float64)):
        found = Tensor(numbers, device=device).cast(name).bitcast("uint8").numpy()
        np.testing.assert_array_equal(found, from_compute(dtype, numbers))
    decoded = Tensor(CODES, device=device).bitcast(name).float().numpy()
    np.testing.assert_array_equal(decoded, to_compute(dtype, CODES))


@pytest.mark.parametrize("name", NAMES)
def test_float64_and_integers_are_rounded_once(name):
    tie = 1.0625 if name == "float8_e4m3" else 1.125  # between 1 and the next number
    step = 2 * (tie - 1)
    numbers = np.array([tie - 2.0**-40, tie, tie + 2.0**-40])
    assert Tensor(numbers).cast(name).float().tolist() == [1.0, 1.0, 1.0 + step]
    assert Tensor([17, -5, 1 << 62]).cast(name).float().tolist()[1] == -5.0


@pytest.mark.parametrize("name", NAMES)
def test_arithmetic_rounds_its_float32(name):
    x, y = Tensor(NUMBERS[:64]).cast(name), Tensor(NUMBERS[64:128]).cast(name)
    a, b = x.float().numpy(), y.float().numpy()
    dtype = FLOAT8[NAMES.index(name)]

    def rounded(value):
        return to_compute(dtype, from_compute(dtype, value))

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal((x + y).float().numpy(), rounded(a + b))
        np.testing.assert_array_equal((x * y).float().numpy(), rounded(a * b))
    np.testing.assert_array_equal(x.maximum(y).float().numpy(), np.maximum(a, b))
    np.testing.assert_array_equal((x < y).numpy(), a < b)
    matrix = x.reshape(8, 8)
    assert matrix.max(1).float().tolist() == a.reshape(8, 8).max(1).tolist()
    assert matrix.argmax(1).tolist() == a.reshape(8, 8).argmax(1).tolist()
    small = (Tensor(RNG.integers(-3, 4, (8, 8))).cast(name), Tensor(np.eye(8)).cast(name))
    assert (small[0] @ small[1]).dtype.name == name
    assert (small[0] @ small[1]).float().tolist() == small[0].float().tolist()


@pytest.mark.parametrize("name", NAMES)
def test_moves_keep_codes(name):
    x = Tensor(CODES.reshape(16, 16)).bitcast(name)
    moved = x.T.flip(0)[2:9, [3, 1, 1]].pad((1, 0)).bitcast("uint8").numpy()
    expected = np.pad(CODES.reshape(16, 16).T[::-1][2:9, [3, 1, 1]], ((0, 0), (1, 0)))
    np.testing.assert_array_equal(moved, expected)
    x[1] = 1.5
    assert x[1].float().tolist() == [1.5] * 16


@pytest.mark.parametrize("name", NAMES)
def test_inside_loops_captured_and_differentiated(name):
    x = Tensor(NUMBERS[:8]).cast(name)
    last, steps = scan(lambda c, v: (c.maximum(v), c), x[0], x)
    assert last.dtype.name == name
    assert last.float().item() == x.float().max().item()
    assert steps.dtype.name == name
    halved = jit(lambda v: v * 0.5)
    for _ in range(3):
        assert halved(x).float().tolist() == (x.float() * 0.5).cast(name).float().tolist()
    weight = Tensor([1.0, 2.0], requires_grad=True)
    (weight.cast(name).float() * Tensor([3.0, 5.0])).sum().backward()
    assert weight.grad.tolist() == [3.0, 5.0]


def test_bitcast_changes_the_last_dimension():
    x = Tensor([[1.0, -2.0]])
    assert x.bitcast("uint16").tolist() == [[0, 0x3F80, 0, 0xC000]]
    assert x.bitcast("uint16").bitcast("float32").tolist() == [[1.0, -2.0]]
    assert x.bitcast("int64").shape == (1, 1)
    assert x.bitcast("int64").bitcast("float32").tolist() == [[1.0, -2.0]]
    with pytest.raises(ValueError, match="no multiple of 2"):
        Tensor([1.0, 2.0, 3.0]).bitcast("float64")
    with pytest.raises(TypeError, match="bitcast"):
        Tensor([True]).bitcast("int8")
