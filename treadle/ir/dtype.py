"""Element types: their names, widths, NumPy storage, rounding, and promotion.

A :class:`DType` is interned: `float32.vec(16)` is the same object every time, so `is` compares
types. `index` is the type of addresses and dimensions; it is 64 bits wide and never the type of a
tensor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from struct import Struct
from typing import NamedTuple, cast

import numpy as np


@dataclass(frozen=True, eq=False)
class DType:
    """One element type, or a vector of `lanes` of them (program stage only).

    kind: "b" bool, "u" unsigned, "i" signed, "f" floating, "c" complex, "x" index.
    bits: the width of one lane in memory is `itemsize` bytes (a bool takes one).
    """

    name: str
    kind: str
    bits: int
    lanes: int = 1
    _vectors: dict[int, DType] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return self.name if self.lanes == 1 else f"{self.name}x{self.lanes}"

    def __reduce__(self) -> tuple[object, ...]:
        return (from_name, (repr(self),))

    @property
    def itemsize(self) -> int:
        """Bytes of one lane."""
        return max(1, self.bits // 8)

    @property
    def scalar(self) -> DType:
        """The type of one lane."""
        return BY_NAME[self.name]

    def vec(self, lanes: int) -> DType:
        """The vector of `lanes` of this scalar type (`lanes` 1 gives the scalar)."""
        base = self.scalar
        if lanes == 1:
            return base
        if lanes not in base._vectors:
            base._vectors[lanes] = DType(base.name, base.kind, base.bits, lanes)
        return base._vectors[lanes]

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_inexact(self) -> bool:
        """Floating or complex: of what has derivatives."""
        return self.kind == "f" or self.kind == "c"

    @property
    def real(self) -> DType:
        """The type of the parts of a complex number; of a real one, itself."""
        return _PARTS.get(self.name, self)

    @property
    def is_int(self) -> bool:
        """Signed or unsigned integer (bool and index are not)."""
        return self.kind in "iu"

    @property
    def storage(self) -> np.dtype:
        """The NumPy dtype of the bytes in memory: bfloat16 is stored as uint16, float8 as uint8."""
        return _STORAGE[self.name]

    @property
    def compute(self) -> np.dtype:
        """The NumPy dtype in which the interpreter holds values (of bfloat16, float8: float32)."""
        return _COMPUTE.get(self.name, _STORAGE[self.name])

    @property
    def dtype(self) -> np.dtype:
        """NumPy's dtype of this name: by this attribute NumPy takes ours for its own, as in
        `np.zeros(2, dtype=treadle.float32)`. AttributeError where NumPy has none."""
        if self.name in _COMPUTE or self.kind == "x":
            raise AttributeError(f"NumPy has no dtype {self.name}")
        return self.storage

    @property
    def accumulator(self) -> DType:
        """The type in which sums of this type are carried: float32 for half, bfloat16, float8."""
        return float32.vec(self.lanes) if self.kind == "f" and self.bits <= 16 else self

    @property
    def min(self) -> int | float | bool:
        """The least value: -inf for floats that have it."""
        if self.kind == "f":
            return -448.0 if self.name == "float8_e4m3" else float("-inf")
        return False if self.kind == "b" else 0 if self.kind == "u" else -(1 << (self.bits - 1))

    @property
    def max(self) -> int | float | bool:
        """The greatest value: inf for floats that have it."""
        if self.kind == "f":
            return 448.0 if self.name == "float8_e4m3" else float("inf")
        return True if self.kind == "b" else (1 << (self.bits - (self.kind != "u"))) - 1

    @property
    def eps(self) -> float:
        """The distance from 1 to the next number of a floating type."""
        return math.ldexp(1.0, -_DIGITS[self.name][0])

    @property
    def largest(self) -> float:
        """The greatest finite number of a floating type."""
        if math.isfinite(self.max):  # its greatest pattern is NaN, and there is no infinity
            return float(self.max)
        digits, exponent, _ = _DIGITS[self.name]
        return math.ldexp(2.0 - 2.0**-digits, exponent)

    @property
    def smallest_normal(self) -> float:
        """The least number above 0 of a floating type that has all its digits."""
        return math.ldexp(1.0, _DIGITS[self.name][2])

    def to_bits(self, value: int | float | bool) -> int:
        """The value as constants hold it: floats as their bit pattern, so that 0.0 is not -0.0
        and NaN equals itself; integers and bools as the Python int, wrapped to the width."""
        if self.kind == "f":
            if isinstance(value, int) and self.bits < 64:
                value = _odd_int(value)
            return _float_bits(self, float(value))
        if self.kind == "b":
            return int(bool(value))
        value = int(value) & ((1 << self.bits) - 1)
        return value - (1 << self.bits) if self.kind in "ix" and value >> (self.bits - 1) else value

    def from_bits(self, bits: int) -> int | float | bool:
        """The Python value of a constant held as `to_bits` made it."""
        if self.kind == "b":
            return bool(bits)
        if self.kind != "f":
            return bits
        if self.bits == 8:
            return float(_float8_values(self.scalar)[bits])
        number, integer = _PACKED[self.bits]
        if self.scalar is bfloat16:
            bits, number, integer = bits << 16, *_PACKED[32]
        return cast(float, number.unpack(integer.pack(bits))[0])


bool_ = DType("bool", "b", 1)
int8 = DType("int8", "i", 8)
int16 = DType("int16", "i", 16)
int32 = DType("int32", "i", 32)
int64 = DType("int64", "i", 64)
uint8 = DType("uint8", "u", 8)
uint16 = DType("uint16", "u", 16)
uint32 = DType("uint32", "u", 32)
uint64 = DType("uint64", "u", 64)
float8_e4m3 = DType("float8_e4m3", "f", 8)
float8_e5m2 = DType("float8_e5m2", "f", 8)
float16 = DType("float16", "f", 16)
bfloat16 = DType("bfloat16", "f", 16)
float32 = DType("float32", "f", 32)
float64 = DType("float64", "f", 64)
complex64 = DType("complex64", "c", 64)
complex128 = DType("complex128", "c", 128)
index = DType("index", "x", 64)
void = DType("void", "v", 0)

TENSOR_DTYPES: tuple[DType, ...] = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float16, bfloat16, float32, float64,
)  # fmt: skip
# Stored and cast; computed with in float32 (graph/narrow.py). Source: Micikevicius et al., "FP8
# formats for deep learning", 2022, with the names of PyTorch's float8_e4m3fn and float8_e5m2.
FLOAT8: tuple[DType, ...] = (float8_e4m3, float8_e5m2)
# In a graph; what is scheduled has pairs of real numbers instead (graph/pairs.py).
COMPLEX: tuple[DType, ...] = (complex64, complex128)
DTYPES: tuple[DType, ...] = (*TENSOR_DTYPES, *FLOAT8, *COMPLEX)  # every one that a tensor may have
BY_NAME: dict[str, DType] = {d.name: d for d in (*DTYPES, index, void)}
_STORAGE = {d.name: np.dtype(d.name) for d in TENSOR_DTYPES if d is not bfloat16}
_STORAGE |= {"bfloat16": np.dtype("uint16"), "index": np.dtype("int64"), "void": np.dtype("V1")}
_STORAGE |= {d.name: np.dtype("uint8") for d in FLOAT8}
_STORAGE |= {d.name: np.dtype(d.name) for d in COMPLEX}
_PARTS = {"complex64": float32, "complex128": float64}
_COMPUTE = {d.name: np.dtype("float32") for d in (bfloat16, *FLOAT8)}
# bits of the fraction, the greatest exponent, the least of a normal number
_DIGITS = {
    "float8_e4m3": (3, 8, -6), "float8_e5m2": (2, 15, -14), "float16": (10, 15, -14),
    "bfloat16": (7, 127, -126), "float32": (23, 127, -126), "float64": (52, 1023, -1022),
}  # fmt: skip


class Format8(NamedTuple):
    """How a float8 is stored: a sign, an exponent with this bias, `mantissa` bits of fraction.
    Codes above `greatest` (without the sign) are no numbers; what is too large becomes
    `overflow`."""

    mantissa: int
    bias: int
    greatest: int
    overflow: int
    nan: int

    @property
    def has_infinity(self) -> bool:
        """Whether what is too large is infinite, and not the greatest number."""
        return self.overflow > self.greatest

    @property
    def least_exponent(self) -> int:
        """Of the normal numbers; subnormals have it, too."""
        return 1 - self.bias


FORMATS = {
    float8_e4m3: Format8(3, 7, 0x7E, 0x7E, 0x7F),  # no infinities: it saturates at 448
    float8_e5m2: Format8(2, 15, 0x7B, 0x7C, 0x7F),
}


# bits -> how Python packs a float of that width, and the unsigned integer over the same bytes
_PACKED = {
    n: (Struct(f), Struct(i)) for n, f, i in ((16, "e", "H"), (32, "f", "I"), (64, "d", "Q"))
}


@cache
def _float8_values(dtype: DType) -> np.ndarray:
    """The float32 of each of the 256 codes."""
    form = FORMATS[dtype]
    codes = np.arange(256)
    size, fraction = codes & 0x7F, codes & ((1 << form.mantissa) - 1)
    exponent = size >> form.mantissa
    hidden = np.where(exponent > 0, 1 << form.mantissa, 0)
    power = np.maximum(exponent, 1) - form.bias - form.mantissa
    values = np.ldexp((hidden + fraction).astype(np.float32), power)
    values[size > form.greatest] = np.nan
    if form.has_infinity:
        values[size == form.overflow] = np.inf
    table: np.ndarray = np.where(codes & 0x80, -values, values).astype(np.float32)
    return table


def _float8_codes(dtype: DType, values: np.ndarray) -> np.ndarray:
    """The codes of floats: rounded to nearest once, ties to even. An exponent's codes follow those
    of the one below: rounding up to a power of two carries by itself."""
    form = FORMATS[dtype.scalar]
    size = np.abs(values).astype(np.float64)
    finite = np.where(np.isfinite(size), size, 1e30)
    exponent = np.where(finite == 0, form.least_exponent, np.frexp(finite)[1] - 1)
    exponent = np.maximum(exponent, form.least_exponent)
    steps = np.rint(np.ldexp(finite, form.mantissa - exponent)).astype(np.int64)
    codes = ((exponent - form.least_exponent) << form.mantissa) + np.minimum(steps, 1 << 8)
    codes = np.where(codes > form.greatest, form.overflow, codes)
    codes = np.where(np.isnan(values), form.nan, codes)
    return np.where(np.signbit(values), codes | 0x80, codes).astype(np.uint8)


# Rounding twice errs where the first rounding makes a tie. It does not if it rounds *to odd*: to a
# number of at least two digits more than the second one keeps, whose last digit is 1 wherever
# anything was lost; then no tie appears that was none.
ODD_INT = 11  # bits of a 64-bit integer that a float64 may not hold
EXACT_INT = 1 << 53  # from here on
ODD_FLOAT = 41  # bits of a float64 after which a bfloat16 has 3 to spare, denormals included


def _odd_int(value: int) -> int:
    """An int with at most 53 binary digits, rounded to odd."""
    lost = max(0, abs(value).bit_length() - 53)
    kept = value >> lost
    return (kept | (kept << lost != value)) << lost


def odd_float64(values: np.ndarray) -> np.ndarray:
    """Integers or floats as float64 of the few digits that keep a rounding to bfloat16 right."""
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        small = np.abs(values).view(np.uint64) < EXACT_INT  # the least int64 stays: above
        values = np.where(small, values, _odd(values, ODD_INT))
    wide = np.asarray(values, dtype=np.float64)
    return _odd(wide.view(np.uint64), ODD_FLOAT).view(np.float64)


def _odd(whole: np.ndarray, lost: int) -> np.ndarray:
    """Integers without their last bits; the last one kept is 1 where one of these was."""
    unit = whole.dtype.type(1 << lost)
    rest = whole & (unit - whole.dtype.type(1))
    return np.asarray((whole - rest) | np.where(rest != 0, unit, whole.dtype.type(0)))


def _float_bits(dtype: DType, value: float) -> int:
    """The bit pattern of a float: rounded to nearest, ties to even, to infinity past the
    greatest."""
    if dtype.bits == 8 or dtype.scalar is bfloat16:
        return int(from_compute(dtype, np.asarray(value, dtype=np.float64)))
    number, integer = _PACKED[dtype.bits]
    try:
        packed = number.pack(value)
    except OverflowError:
        packed = number.pack(math.copysign(math.inf, value))
    return cast(int, integer.unpack(packed)[0])


def from_name(text: str) -> DType:
    """The type that `repr` prints as `text`, e.g. `float32` or `float32x16`."""
    if text in BY_NAME:
        return BY_NAME[text]
    name, _, lanes = text.rpartition("x")
    if name in BY_NAME and lanes.isdigit():
        return BY_NAME[name].vec(int(lanes))
    raise ValueError(f"no dtype is called {text!r}; there are {', '.join(BY_NAME)}")


def from_numpy(dtype: np.dtype) -> DType:
    """The type of a NumPy array. TypeError for what has no counterpart (object, str)."""
    dtype = np.dtype(dtype)
    found = BY_NAME.get(dtype.newbyteorder("=").name) if dtype.kind in "biufc" else None
    if found is None:
        names = ", ".join(d.name for d in (*TENSOR_DTYPES, *COMPLEX))
        advice = _NUMBERS_OF.get(dtype.kind, "numbers")
        raise TypeError(
            f"a NumPy array of dtype {dtype} has no treadle dtype; supported: {names}: "
            f"give {advice}"
        )
    return found


# kind of a NumPy dtype that has no counterpart -> which numbers may be meant
_NUMBERS_OF = {
    "O": "array.astype(float), if its objects are numbers",
    "V": "one field, as in array['a']",
    "M": "array.astype('int64'), the time since 1970 in its unit",
    "m": "array.astype('int64'), the time in its unit",
    "f": "array.astype('float64')",
    "c": "array.astype('complex128')",
}


def to_compute(dtype: DType, stored: np.ndarray) -> np.ndarray:
    """Stored bytes as the values the interpreter computes with: bfloat16 and float8 as float32."""
    if dtype.name not in _COMPUTE:
        return stored
    if dtype.scalar is bfloat16:
        return np.asarray(stored.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(_float8_values(dtype.scalar)[stored])


def from_compute(dtype: DType, values: np.ndarray) -> np.ndarray:
    """Computed values as they are stored: bfloat16 and float8 round to nearest once, ties to even,
    also from float64 (bfloat16 from integers, too)."""
    if dtype.scalar in FORMATS:
        return _float8_codes(dtype, values)
    if dtype.scalar is not bfloat16:
        return values
    if values.dtype != np.float32:
        values = odd_float64(values)
    with np.errstate(over="ignore"):  # to infinity
        bits = np.asarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    return np.where(np.isnan(values), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def round_to(dtype: DType, values: np.ndarray) -> np.ndarray:
    """Values computed in a wider type, as `dtype` would hold them (bfloat16 and float8 change)."""
    if dtype.name in _COMPUTE:
        return to_compute(dtype, from_compute(dtype, values))
    return values


_FLOAT_RANK = {float8_e4m3: 0, float8_e5m2: 0, float16: 1, bfloat16: 1, float32: 2, float64: 3}


def promote(a: DType, b: DType) -> DType:
    """The common type of two arrays: the Array API's tables; where they leave it open, an integer
    with a float gives that float, half with bfloat16 (and one float8 with the
    other) gives float32, uint64 with a signed integer gives float32 (there is no integer that holds
    both; as an integer with the default float). A complex type with a real one is complex, of
    float64 if either is."""
    if a is b:
        return a
    if a.is_complex or b.is_complex:
        return complex128 if float64 in (a.real, b.real) else complex64
    if a.kind == "b" or b.kind == "b":
        return b if a.kind == "b" else a
    if a.is_float or b.is_float:
        if a.is_float and b.is_float:
            if _FLOAT_RANK[a] == _FLOAT_RANK[b]:
                return float32
            return a if _FLOAT_RANK[a] > _FLOAT_RANK[b] else b
        return a if a.is_float else b
    if a.kind == b.kind:
        return a if a.bits >= b.bits else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    if unsigned.bits == 64:
        return float32
    return BY_NAME[f"int{unsigned.bits * 2}"]
