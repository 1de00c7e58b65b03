"""Cases that are one operation: products, convolutions, rows, what only moves memory, attention."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from treadle.tools.bench.case import Arrays, Case, Maker, Target, normal, plain
from treadle.tools.bench.libraries import Library

MATMULS = (
    (64, 64, 64), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048),
    (1000, 777, 1234), (64, 4096, 512), (4096, 64, 4096),
)  # fmt: skip
BATCHED = (16, 200, 200, 200)
LAYOUTS = ("NN", "NT", "TN", "TT")
MATVECS = ((4096, 1024), (4096, 4096))
WIDE = (1, 2048, 8192)

# (channels, outputs, width of the kernel, stride, side of the image) of each distinct convolution
RESNET50 = (
    (3, 64, 7, 2, 224),
    (64, 64, 1, 1, 56), (64, 64, 3, 1, 56), (64, 256, 1, 1, 56), (256, 64, 1, 1, 56),
    (256, 128, 1, 1, 56), (128, 128, 3, 2, 56), (128, 512, 1, 1, 28), (256, 512, 1, 2, 56),
    (512, 128, 1, 1, 28), (128, 128, 3, 1, 28),
    (512, 256, 1, 1, 28), (256, 256, 3, 2, 28), (256, 1024, 1, 1, 14), (512, 1024, 1, 2, 28),
    (1024, 256, 1, 1, 14), (256, 256, 3, 1, 14),
    (1024, 512, 1, 1, 14), (512, 512, 3, 2, 14), (512, 2048, 1, 1, 7), (1024, 2048, 1, 2, 14),
    (2048, 512, 1, 1, 7), (512, 512, 3, 1, 7),
)  # fmt: skip

SIDE = 4096  # of the square arrays of rows: 16M elements
SIZE = SIDE * SIDE
NEAR_COPY = {"relu_affine", "exp", "gelu"}
CONVOLUTION = Target(1.0, alone=0.0)
CHEAP = Target(2.3, stream=("elementwise/copy", 1.1), instead=True)


# ---- matrix products -----------------------------------------------------------------------------
def matmuls() -> Iterator[Case]:
    """float32 in all layouts, batched, bfloat16, matrix by vector."""
    for shape in (*MATMULS, BATCHED):
        *batch, m, k, n = shape
        words = "x".join(map(str, shape if m != n or m != k or batch else [m]))
        for layout in LAYOUTS:
            a = (*batch, m, k) if layout[0] == "N" else (*batch, k, m)
            b = (*batch, k, n) if layout[1] == "N" else (*batch, n, k)
            yield Case(
                f"matmul/{words}/{layout}",
                f"float32 product of {a} and {b}, {layout}",
                normal(a, b),
                plain(_product(layout)),
                operations=2 * prod(shape),
                bytes=4 * prod(batch) * (m * k + k * n + m * n),
                target=Target(1.1, alone=0.95),
                quick=layout == "NN" and max(shape) <= 1024,
            )
    for name, function in (("product", _product("NN")), ("bias_gelu", _bias_gelu)):
        side = (1024, 1024)
        shapes = (side, side) if name == "product" else (side, side, (1024,))
        yield Case(
            f"matmul_bfloat16/1024/{name}",
            "bfloat16 product" + (" with bias and GELU" if name != "product" else ""),
            normal(*shapes),
            plain(function),
            dtype="bfloat16",
            operations=2 * 1024**3,
            tolerance=2e-2,
            target=Target(1.0),
        )
    for rows, columns in MATVECS:
        yield _streamed(f"matvec/{rows}x{columns}", (rows, columns), (columns,))
    rows, inner, columns = WIDE
    yield _streamed(f"matvec/{rows}x{inner}x{columns}", (rows, inner), (inner, columns))


def _streamed(name: str, left: tuple[int, ...], right: tuple[int, ...]) -> Case:
    """A product that reads its matrix once."""
    elements = max(prod(left), prod(right))
    return Case(
        name,
        f"float32 product of {left} and {right}",
        normal(left, right),
        plain(_product("NN")),
        operations=2 * elements,
        bytes=4 * elements,
        target=Target(1.6),
        quick=name == "matvec/4096x1024",
    )


def _product(layout: str) -> Any:
    def multiply(library: Library, a: Any, b: Any) -> Any:
        left = a if layout[0] == "N" else a.transpose(-2, -1)
        return left @ (b if layout[1] == "N" else b.transpose(-2, -1))

    return multiply


def _bias_gelu(library: Library, a: Any, b: Any, bias: Any) -> Any:
    return library.functional.gelu(a @ b + bias)


# ---- convolutions --------------------------------------------------------------------------------
def convolutions() -> Iterator[Case]:
    """Forward with unchanging weights (packed once where a library can), depthwise, gradients."""
    yield _convolution(8, 64, 64, 3, 1, 56, name="conv/8x64x56x56/3x3", quick=True)
    yield _convolution(
        8, 64, 64, 3, 1, 56, groups=64, name="depthwise/8x64x56x56/3x3", target=Target(2.0)
    )
    for batch in (1, 8):
        for channels, outputs, width, stride, side in RESNET50:
            step = f"s{stride}" if stride > 1 else ""
            name = f"resnet50/{batch}x{channels}x{side}x{side}/{outputs}x{width}x{width}{step}"
            yield _convolution(batch, channels, outputs, width, stride, side, name=name)
    yield from _convolution_gradients()


def _convolution(
    batch: int,
    channels: int,
    outputs: int,
    width: int,
    stride: int,
    side: int,
    *,
    name: str,
    groups: int = 1,
    target: Target = CONVOLUTION,
    quick: bool = False,
) -> Case:
    pad = width // 2
    after = (side + 2 * pad - width) // stride + 1
    weight = (outputs, channels // groups, width, width)

    def run(library: Library, w: Any, x: Any) -> Any:
        return library.functional.conv2d(x, w, None, stride, pad, 1, groups)

    return Case(
        name,
        f"conv2d of {(batch, channels, side, side)} by {weight}, stride {stride}, no bias",
        normal((batch, channels, side, side)),
        plain(run),
        weights=normal(weight),
        operations=2 * batch * after * after * prod(weight),
        bytes=4 * (batch * (channels * side**2 + outputs * after**2) + prod(weight)),
        target=target,
        quick=quick,
    )


def _convolution_gradients() -> Iterator[Case]:
    image, weight = (8, 64, 56, 56), (64, 64, 3, 3)

    def of_input(library: Library, w: Any, x: Any, cotangent: Any) -> Any:
        conv = library.functional.conv2d
        return library.gradients(lambda x: conv(x, w, None, 1, 1), [x], cotangent)

    def of_weight(library: Library, w: Any, x: Any, cotangent: Any) -> Any:
        conv = library.functional.conv2d
        return library.gradients(lambda w: conv(x, w, None, 1, 1), [w], cotangent)

    for name, function in (("input", of_input), ("weight", of_weight)):
        yield Case(
            f"conv_gradient/8x64x56x56/3x3/{name}",
            f"the gradient of a convolution by its {name} (PyTorch computes the forward too)",
            normal(image, image),
            plain(function),
            weights=normal(weight),
            operations=2 * prod(image) * 64 * 9,
            target=Target(0.9),
        )


# ---- what moves memory ---------------------------------------------------------------------------
def memory_bound() -> Iterator[Case]:
    """16M elements: elementwise, sums, rows with their gradients."""
    elementwise = {
        "copy": lambda library, x: x.clone(),
        "relu_affine": lambda library, x: library.functional.relu(x * 2 + 1),
        "exp": lambda library, x: x.exp(),
        "gelu": lambda library, x: library.functional.gelu(x),
    }
    for name, function in elementwise.items():
        target = CHEAP if name in NEAR_COPY else Target()
        yield _over(f"elementwise/{name}", f"{name} of 16M", function, 2, target)
    sums = {
        "axis0": lambda library, x: x.sum(0),
        "axis1": lambda library, x: x.sum(1),
        "all": lambda library, x: x.sum(),
    }
    for name, function in sums.items():
        yield _over(f"sum/{name}", f"the sum of 4096x4096, {name}", function, 1, Target())
    yield from _rows()


def _over(name: str, what: str, function: Any, passes: int, target: Target) -> Case:
    return Case(
        name,
        what,
        normal((SIDE, SIDE)),
        plain(function),
        bytes=4 * SIZE * passes,
        target=target,
        quick=name in ("elementwise/exp", "sum/axis1"),
    )


def _rows() -> Iterator[Case]:
    def softmax(library: Library, x: Any) -> Any:
        return library.functional.softmax(x, 1)

    def layer_norm(library: Library, weight: Any, bias: Any, x: Any) -> Any:
        return library.functional.layer_norm(x, (SIDE,), weight, bias)

    def cross_entropy(library: Library, labels: Any, x: Any) -> Any:
        return library.functional.cross_entropy(x, labels)

    def labels(random: np.random.Generator) -> Arrays:
        return [random.integers(0, SIDE, SIDE)]

    yield from _with_gradient("softmax", softmax, labels=None)
    yield from _with_gradient("layer_norm", layer_norm, labels=normal((SIDE,), (SIDE,)))
    yield from _with_gradient("cross_entropy", cross_entropy, labels=labels)


def _with_gradient(name: str, function: Any, labels: Maker | None) -> Iterator[Case]:
    weights = labels or normal()
    is_loss = name == "cross_entropy"
    yield Case(
        f"{name}/forward",
        f"{name} of the rows of 4096x4096",
        normal((SIDE, SIDE)),
        plain(function),
        weights=weights,
        bytes=4 * SIZE * (1 if is_loss else 2),
        target=Target(1.5),
        quick=name == "softmax",
    )

    def gradient(library: Library, *given: Any) -> Any:
        *fixed, x, cotangent = given
        return library.gradients(lambda x: function(library, *fixed, x), [x], cotangent)

    yield Case(
        f"{name}/gradient",
        f"the gradient of {name} by its input",
        normal((SIDE, SIDE), () if is_loss else (SIDE, SIDE)),
        plain(gradient),
        weights=weights,
        bytes=4 * SIZE * (2 if is_loss else 3),
        target=Target(1.5),
    )


# ---- attention -----------------------------------------------------------------------------------
def attention() -> Iterator[Case]:
    """Attention of 8 heads x 1024 x 64, causal with its gradient, and not causal."""
    shape = (1, 8, 1024, 64)
    operations = 2 * 2 * prod(shape) * 1024 // 2

    def forward(library: Library, q: Any, k: Any, v: Any) -> Any:
        return library.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def gradient(library: Library, q: Any, k: Any, v: Any, cotangent: Any) -> Any:
        return library.gradients(lambda *at: forward(library, *at), [q, k, v], cotangent)

    yield Case(
        "attention/causal/forward",
        "causal attention, 8 heads x 1024 x 64",
        normal(shape, shape, shape),
        plain(forward),
        operations=operations,
        target=Target(1.5),
        quick=True,
    )
    yield Case(
        "attention/full/forward",
        "attention without a mask, 8 heads x 1024 x 64",
        normal(shape, shape, shape),
        plain(lambda library, *at: library.functional.scaled_dot_product_attention(*at)),
        operations=2 * operations,
    )
    yield Case(
        "attention/causal/gradient",
        "its gradients by q, k and v",
        normal(shape, shape, shape, shape),
        plain(gradient),
        operations=3 * operations,
        tolerance=1e-3,
        target=Target(1.0),
    )


def cases() -> Iterator[Case]:
    """All of this file."""
    yield from matmuls()
    yield from convolutions()
    yield from memory_bound()
    yield from attention()
