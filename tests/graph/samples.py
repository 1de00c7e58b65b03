"""Samples of every operation that has a derivative: (function, arrays), by operation."""

from collections.abc import Callable

import numpy as np

from treadle.graph import build as b
from treadle.graph.parts import complex_of, imag, real
from treadle.ir import ops
from treadle.ir.dtype import float32, float64, int64
from treadle.ir.node import Node

RANDOM = np.random.default_rng(7)
X = RANDOM.uniform(0.4, 1.6, (3, 4))
Z = RANDOM.uniform(0.5, 1.5, (3, 4))
SIGNED = X * np.array([1.0, -1.0, 1.0, -1.0])
TIED = np.array([[1.0, 2.0, 0.5, 0.25], [3.0, 0.0, 1.0, 2.0]])
PICK = np.array([[0, 2, 1, 1], [2, 0, 0, 1]])  # along axis 0 of X, with equal ones
ROWS = np.array([[1, 1, 0, 3], [0, 2, 2, 2], [3, 0, 1, 3]])


def alu(op: ops.Op) -> Callable[..., Node]:
    return lambda *xs: b.alu(op, *xs)


def argument(name: str) -> Callable[[Node], Node]:
    def extreme(x: Node) -> Node:
        where = b.expand(b.reshape(b.iota(x.shape[1], int64), (1, x.shape[1])), x.shape)
        return b.reduce(name, (x, where), 1)[0]

    return extreme


def scatter(monoid: str) -> Callable[..., Node]:
    return lambda base, where, value: b.scatter(base, where, value, 0, monoid)


def positive(x: Node) -> Node:
    return b.alu(ops.LT, 0.0, x)


def as_a_pair(x: Node, z: Node) -> Node:
    pair = ops.CONTIGUOUS(complex_of(x, z))
    return b.alu(ops.MUL, real(pair), imag(pair))


def window(x: Node) -> Node:
    return b.window(x, 1, 2, 1, 2)


# op -> the samples that test its row: (function, arrays)
SAMPLES: dict[ops.Op, list[tuple[Callable[..., Node], tuple[np.ndarray, ...]]]] = {
    **{
        op: [(alu(op), (SIGNED, Z)), (alu(op), (SIGNED, Z[:1]))]
        for op in (ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.MAX, ops.MIN, ops.ZMUL)
    },
    **{op: [(as_a_pair, (SIGNED, Z))] for op in (ops.COMPLEX, ops.REAL, ops.IMAG)},
    ops.FMA: [(alu(ops.FMA), (SIGNED, Z, X))],
    ops.POW: [
        (alu(ops.POW), (X, SIGNED)),
        (lambda x: b.alu(ops.POW, x, 3.0), (SIGNED,)),
        (lambda x: b.alu(ops.POW, x, 2.0), (SIGNED * 0,)),
    ],
    **{
        op: [(alu(op), (SIGNED,))]
        for op in (
            ops.NEG, ops.ABS, ops.EXP, ops.EXP2, ops.EXPM1, ops.SIN, ops.COS, ops.ATAN, ops.TANH,
            ops.ERF, ops.ERFC, ops.NORMAL_CDF, ops.FLOOR, ops.CEIL, ops.TRUNC, ops.RINT,
        )
    },
    **{op: [(alu(op), (SIGNED * 0.5,))] for op in (ops.TAN, ops.ERFINV)},
    **{
        op: [(alu(op), (X,))]
        for op in (ops.SQRT, ops.LOG, ops.LOG2, ops.LOG1P, ops.LGAMMA, ops.DIGAMMA)
    },
    ops.WHERE: [(lambda x, z: b.where(positive(x), b.alu(ops.MUL, x, z), z), (SIGNED, Z))],
    ops.CAST: [(lambda x: b.cast(b.cast(x, float32), float64), (X,))],
    ops.RESHAPE: [(lambda x: b.reshape(x, (2, 6)), (X,))],
    ops.PERMUTE: [(lambda x: b.permute(x, (2, 0, 1)), (RANDOM.random((2, 3, 4)),))],
    ops.EXPAND: [(lambda x: b.expand(x, (5, 3, 4)), (X[:, :1],))],
    ops.PAD: [(lambda x: b.pad(x, ((1, 0), (2, 3)), 1.0), (X,))],
    ops.SHRINK: [(lambda x: b.shrink(x, ((1, 3), (0, 2))), (X,))],
    ops.FLIP: [(lambda x: b.flip(x, (0, 1)), (X,))],
    ops.WINDOW: [(window, (X,)), (lambda x: b.window(x, 0, 2, 2), (np.concatenate([X, Z]),))],
    ops.UNWINDOW: [
        (lambda x: b.unwindow(x, 0, 15, 2, 3), (X,)),
        (lambda x: b.unwindow(x, 0, 14, 2, 3), (X,)),
    ],
    ops.REDUCE: [
        (lambda x: b.reduce("add", x, 0), (X,)),
        (lambda x: b.reduce("mul", x, 1), (SIGNED,)),
        (lambda x: b.reduce("mul", x, (0, 2)), (RANDOM.random((3, 2, 3)),)),
        (lambda x: b.reduce("mul", x, 1), (TIED,)),
        (lambda x: b.reduce("max", x, 1), (X,)),
        (lambda x: b.reduce("min", x, (0, 1)), (X,)),
        (argument("argmax"), (X,)),
        (argument("argmin"), (X,)),
    ],
    ops.GATHER: [
        (lambda x, where: b.gather(x, where, 0), (X, PICK)),
        (lambda x, where: b.gather(x, where, 1), (X, ROWS)),
        (lambda x, where: b.gather(x, where, 1), (X, ROWS[:, 2:3])),
    ],
    ops.SCATTER: [
        (scatter(monoid), (X, PICK, Z[:2])) for monoid in ("set", "add", "mul", "max", "min")
    ],
    ops.UPDATE: [
        (lambda x, v: b.update(x, v, ((1, 1), (0, 3))), (X, Z[:2, :2])),
        (lambda x, v: b.update(x, v, ((0, 2), (1, 1))), (X, Z[:2, :3])),
    ],
    ops.CONTIGUOUS: [(b.contiguous, (X,))],
    ops.COPY: [(lambda x: ops.COPY(x, arg="OTHER"), (X,))],
    ops.AGAIN: [(lambda x: ops.AGAIN(x, x), (X,))],
}  # fmt: skip
