"""How LLVM spells the matrix instructions of `ir/matrix.py`: by the tile registers of x86 (AMX).

A tile is a vector in the text and a value of type x86_amx where an instruction takes it; LLVM takes
the conversions out again, also around loops, and allots and configures the eight registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.backend.llvm.spell import Body, memory_type, suffix
from treadle.ir import ops
from treadle.ir.dots import GROUP
from treadle.ir.dtype import DType
from treadle.ir.matrix import Matrix
from treadle.ir.node import Node

# features of a processor, all of which it takes -> names of what it then has
FEATURES = {("amx-tile", "amx-bf16"): ("mma_bf16",), ("amx-tile", "amx-int8"): ("mma_i8",)}
_INTEGERS = {"int8": "s", "uint8": "u"}
_TILE = "x86_amx"
WORD = 4  # bytes of every element


def _name(matrix: Matrix) -> str:
    if matrix.total.is_float:
        return "llvm.x86.tdpbf16ps.internal"
    signs = "".join(_INTEGERS[dtype.name] for dtype in matrix.factors)
    return f"llvm.x86.tdpb{signs}d.internal"


def multiply(body: Body, matrix: Matrix, operands: list[str]) -> str:
    """Write a product of tiles added to a tile of sums; the name of its value."""
    dtypes = (matrix.total, GROUP, GROUP)
    kinds = [memory_type(of.vec(lanes)) for of, lanes in zip(dtypes, matrix.lanes)]
    tiles = [(_TILE, _to_tile(body, kind, value)) for kind, value in zip(kinds, operands)]
    groups = matrix.k // matrix.size
    shape = [("i16", str(n)) for n in (matrix.m, WORD * matrix.n, WORD * groups)]
    return _to_vector(body, kinds[0], body.intrinsic(_name(matrix), _TILE, *shape, *tiles))


def read(body: Body, node: Node, address: str, stride: str) -> str:
    """Write the reading of a tile whose rows are `stride` elements apart; the name of its value."""
    place = _place(body, node.arg[1:], node.src[0].dtype, address, node.src[2], stride)
    tile = body.intrinsic("llvm.x86.tileloadd64.internal", _TILE, *place)
    return _to_vector(body, memory_type(node.dtype), tile)


def write(body: Body, node: Node, address: str, stride: str, value: str) -> None:
    """Write the writing of a tile whose rows are `stride` elements apart."""
    place = _place(body, node.arg[1:], node.src[0].dtype, address, node.src[2], stride)
    tile = _to_tile(body, memory_type(node.src[3].dtype), value)
    body.intrinsic("llvm.x86.tilestored64.internal", "void", *place, (_TILE, tile))


def _place(
    body: Body, shape: Sequence[int], element: DType, address: str, distance: Node, stride: str
) -> list[tuple[str, str]]:
    rows, columns = shape
    if distance.op is ops.CONST:
        bytes_ = str(int(distance.value) * element.itemsize)
    else:
        bytes_ = body.emit(f"mul i64 {stride}, {element.itemsize}")
    return [("i16", str(rows)), ("i16", str(WORD * columns)), ("ptr", address), ("i64", bytes_)]


def _to_tile(body: Body, kind: str, vector: str) -> str:
    return body.intrinsic(f"llvm.x86.cast.vector.to.tile.{suffix(kind)}", _TILE, (kind, vector))


def _to_vector(body: Body, kind: str, tile: str) -> str:
    return body.intrinsic(f"llvm.x86.cast.tile.to.vector.{suffix(kind)}", kind, (_TILE, tile))
