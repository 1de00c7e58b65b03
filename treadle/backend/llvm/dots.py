"""How LLVM spells the dot instructions of `ir/dots.py`: by the intrinsics of x86."""

from __future__ import annotations

from treadle.backend.llvm.spell import Body
from treadle.ir.dots import Dot

# features of a processor, all of which it takes -> names of what it then has
FEATURES = {
    ("avx512bf16", "avx512vl"): ("dot_bf16",),
    ("avx512vnni", "avx512vl"): ("dot_i16", "dot_i8"),
}
# instruction -> (name of the intrinsic, type of a group's numbers)
_NAMES = {
    "dot_bf16": ("llvm.x86.avx512bf16.dpbf16ps", "bfloat"),
    "dot_i16": ("llvm.x86.avx512.vpdpwssd", "i16"),
    "dot_i8": ("llvm.x86.avx512.vpdpbusd", "i8"),
}
LEAST, MOST = 4, 16  # lanes of a sum that an instruction has


def dot(body: Body, instruction: Dot, lanes: int, operands: list[str]) -> str:
    """Write the sum after a dot instruction; the name of its value. Lanes that no instruction has
    are done in pieces, or beside others that nobody reads."""
    element = "float" if instruction.total.is_float else "i32"
    kinds = [_type(lanes, of) for of in (element, "i32", "i32")]
    if lanes == 1:
        wide = [
            body.emit(f"insertelement {_type(LEAST, of)} zeroinitializer, {of} {value}, i64 0")
            for of, value in zip(kinds, operands)
        ]
        total = _call(body, instruction, element, LEAST, wide)
        return body.emit(f"extractelement {_type(LEAST, element)} {total}, i64 0")
    if lanes < LEAST:
        wide = [_lanes_of(body, kind, value, range(LEAST)) for kind, value in zip(kinds, operands)]
        total = _call(body, instruction, element, LEAST, wide)
        return _lanes_of(body, _type(LEAST, element), total, range(lanes))
    if lanes > MOST:
        half = lanes // 2
        low, high = (
            dot(body, instruction, half, [
                _lanes_of(body, kind, value, range(start, start + half))
                for kind, value in zip(kinds, operands)
            ])
            for start in (0, half)
        )  # fmt: skip
        order = ", ".join(f"i32 {lane}" for lane in range(lanes))
        of = _type(half, element)
        return body.emit(f"shufflevector {of} {low}, {of} {high}, <{lanes} x i32> <{order}>")
    return _call(body, instruction, element, lanes, operands)


def _type(lanes: int, element: str) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


def _lanes_of(body: Body, kind: str, value: str, lanes: range) -> str:
    """A vector of some lanes of another; past its end they are anything."""
    size = int(kind[1:].split()[0])
    order = ", ".join(f"i32 {lane}" if lane < size else "i32 poison" for lane in lanes)
    return body.emit(f"shufflevector {kind} {value}, {kind} poison, <{len(lanes)} x i32> <{order}>")


def _call(body: Body, instruction: Dot, element: str, lanes: int, operands: list[str]) -> str:
    name, number = _NAMES[instruction.feature]
    groups = _type(lanes * instruction.size, number)
    given = [
        (groups, body.emit(f"bitcast <{lanes} x i32> {value} to {groups}"))
        for value in operands[1:]
    ]
    total = _type(lanes, element)
    return body.intrinsic(f"{name}.{32 * lanes}", total, (total, operands[0]), *given)
