"""Cases of pools, resampling, sampling, normalisation, embeddings and patches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Case

from treadle import Tensor

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
functional = torch.nn.functional
RNG = np.random.default_rng(5)


def n(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


X3, X4, X5 = n(2, 4, 9), n(2, 4, 6, 5), n(1, 2, 4, 5, 4)
IDS = np.array([[0, 2, 1], [3, 0, 0]])
FLAT = np.array([0, 2, 1, 3, 0, 0, 1])
OFFSETS = np.array([0, 2, 2, 5, 7])
GRID = np.tanh(n(2, 3, 4, 2)) * 1.3
GRID3 = np.tanh(n(1, 2, 3, 2, 3)) * 1.2


def theirs_as(name: str) -> Callable[..., Any]:
    """PyTorch's function of that name."""
    return getattr(functional, name)


def values(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The values of a pool that also gives indices."""
    return (
        lambda x, *args: getattr(Tensor, name)(x, *args, return_indices=True)[0],
        lambda x, *args: getattr(functional, name)(x, *args, return_indices=True)[0],
    )


def unpool(count: int) -> Case:
    x = (X3, X4, X5)[count - 1]
    _, indices = getattr(functional, f"max_pool{count}d")(torch.tensor(x), 2, return_indices=True)
    pooled = n(*indices.shape)
    return Case(
        (pooled, indices.numpy()),
        (2,),
        {"output_size": x.shape[2:]},
        theirs=theirs_as(f"max_unpool{count}d"),
    )


def resized(x: np.ndarray, **named: Any) -> Case:
    return Case((x,), named=named, theirs=functional.interpolate)


def bag(ids: np.ndarray, *more: np.ndarray, **named: Any) -> Case:
    """An embedding bag by its table (and weights)."""

    def ours(table: Any, *weights: Any) -> Any:
        options = {k: Tensor(v) if isinstance(v, np.ndarray) else v for k, v in named.items()}
        if weights:
            options["per_sample_weights"] = weights[0]
        return Tensor(ids).embedding_bag(table, **options)

    def theirs(table: Any, *weights: Any) -> Any:
        options = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in named.items()}
        if weights:
            options["per_sample_weights"] = weights[0]
        return functional.embedding_bag(torch.tensor(ids), table, **options)

    return Case((n(4, 3), *more), ours=ours, theirs=theirs, order=1)


NEURAL: dict[str, list[Case]] = {
    "max_pool1d": [Case((X3,), (3,), {"stride": 2, "padding": 1})],
    "max_pool2d": [
        Case((X4,), (2,)),
        Case((X4,), (3,), {"stride": 1, "padding": 1}),
        Case((X4,), (2, 2, 1, 2, True), ours=values("max_pool2d")[0],
             theirs=values("max_pool2d")[1]),
    ],
    "max_pool3d": [Case((X5,), (2,))],
    "avg_pool1d": [Case((X3,), (3,), {"stride": 2, "padding": 1})],
    "avg_pool2d": [
        Case((X4,), (2,)),
        Case((X4,), (3,), {"padding": 1, "count_include_pad": False}),
        Case((X4,), (3, 2, 1, True), {"divisor_override": 5}),
    ],
    "avg_pool3d": [Case((X5,), (2,))],
    "lp_pool1d": [Case((np.abs(X3), ), (2, 3)), Case((X3,), (3, 2, 1, True))],
    "lp_pool2d": [Case((X4,), (2, (2, 3))), Case((X4,), (4, 3, 2, True))],
    "lp_pool3d": [Case((X5,), (2, 2))],
    "max_unpool1d": [unpool(1)],
    "max_unpool2d": [unpool(2)],
    "max_unpool3d": [unpool(3)],
    "adaptive_avg_pool1d": [Case((X3,), (4,)), Case((X3,), (3,)), Case((X3[0],), (12,))],
    "adaptive_avg_pool2d": [
        Case((X4,), (1,)),
        Case((X4,), ((None, 2),)),
        Case((X4,), ((4, 3),)),
    ],
    "adaptive_avg_pool3d": [Case((X5,), ((2, 3, 4),))],
    "adaptive_max_pool1d": [Case((X3,), (4,))],
    "adaptive_max_pool2d": [
        Case((X4,), ((4, 5),)),
        Case((X4,), ((4, 3),), ours=values("adaptive_max_pool2d")[0],
             theirs=values("adaptive_max_pool2d")[1]),
    ],
    "adaptive_max_pool3d": [Case((X5,), ((2, 3, 4),))],
    "interpolate": [
        resized(X3, scale_factor=2),
        resized(X4, size=(4, 7)),
        resized(X4, size=(4, 7), mode="nearest-exact"),
        resized(X5, scale_factor=1.7),
        resized(X3, size=13, mode="linear"),
        resized(X3, size=1, mode="linear", align_corners=True),
        resized(X4, scale_factor=(1.6, 0.7), mode="bilinear"),
        resized(X4, scale_factor=1.6, mode="bilinear", recompute_scale_factor=True),
        resized(X4, size=(11, 3), mode="bilinear", align_corners=True),
        resized(X4, size=(8, 4), mode="bicubic"),
        resized(X4, scale_factor=1.5, mode="bicubic", align_corners=True),
        resized(X5, size=(3, 7, 4), mode="trilinear"),
        resized(X4, size=(4, 3), mode="area"),
    ],
    "grid_sample": [
        Case((X4, GRID), named={"mode": mode, "padding_mode": padding, "align_corners": corners},
             theirs=functional.grid_sample, order=1)
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for corners in (False, True)
    ] + [
        Case((X5, GRID3), named={"align_corners": True}, theirs=functional.grid_sample, order=1),
        Case((X5, GRID3), named={"mode": "nearest", "padding_mode": "border",
             "align_corners": False}, theirs=functional.grid_sample, order=1),
    ],
    "affine_grid": [
        Case((n(2, 2, 3),), ((2, 3, 4, 5),), {"align_corners": False}),
        Case((n(2, 3, 4),), ((2, 1, 2, 1, 3),), {"align_corners": True}),
    ],
    "pixel_shuffle": [Case((n(2, 8, 3, 2),), (2,))],
    "pixel_unshuffle": [Case((n(2, 2, 4, 6),), (2,))],
    "channel_shuffle": [Case((X4,), (2,), theirs=lambda x, g: x.reshape(2, g, -1, 6, 5)
                             .transpose(1, 2).reshape(x.shape))],
    "instance_norm": [Case((X4, n(4), n(4)), ours=lambda x, w, b: x.instance_norm(w, b),
                           theirs=lambda x, w, b: functional.instance_norm(x, None, None, w, b))],
    "layernorm": [Case((X4,), ((1, 2),), theirs=lambda x, d:
                       (x - x.mean(d, True)) / (x.var(d, False, keepdim=True) + 1e-5).sqrt())],
    "batchnorm": [Case((X4, n(4), n(4), n(4), np.abs(n(4))),
                       ours=lambda x, w, b, m, s: x.batchnorm(w, b, m, s),
                       theirs=lambda x, w, b, m, s: (x - m[:, None, None]) * (s * w)[:, None, None]
                       + b[:, None, None])],
    "local_response_norm": [Case((X4,), (3, 0.1, 0.7, 1.5)), Case((X3,), (2,))],
    "normalize": [Case((X4,)), Case((X4,), named={"p": 1.0, "dim": (2, 3)})],
    "embedding": [
        Case((n(4, 3), IDS), ours=lambda table, ids: ids.embedding(table),
             theirs=lambda table, ids: functional.embedding(ids, table)),
        Case((n(4, 3), IDS), ours=lambda table, ids: ids.embedding(table, 2, True),
             theirs=lambda table, ids: functional.embedding(ids, table, 2, scale_grad_by_freq=True),
             order=1),
    ],
    "embedding_bag": [
        *(bag(IDS, mode=mode) for mode in ("sum", "mean", "max")),
        *(bag(FLAT, mode=mode, offsets=OFFSETS[:-1]) for mode in ("sum", "mean", "max")),
        *(bag(FLAT, mode=mode, offsets=OFFSETS, include_last_offset=True, padding_idx=0)
          for mode in ("sum", "mean", "max")),
        bag(IDS, n(2, 3), mode="sum", padding_idx=1),
        bag(FLAT, n(7), mode="sum", offsets=OFFSETS[:-1]),
        # PyTorch's own bags divide by the count of another row here
        Case((n(4, 3),), ours=lambda table: Tensor(IDS).embedding_bag(
                 table, scale_grad_by_freq=True),
             theirs=lambda table: functional.embedding(
                 torch.tensor(IDS), table, scale_grad_by_freq=True).mean(1), order=1),
    ],
    "im2col": [Case((X4,), ((3, 2),), {"padding": 1, "stride": (2, 1), "dilation": 2},
                    theirs=functional.unfold)],
    "col2im": [Case((n(2, 2 * 6, 12),), ((5, 7), (2, 3)), {"padding": 1, "stride": 2},
                    theirs=functional.fold)],
    **{name: [Case((X3,), (0.0,), theirs=lambda x, p: x)] for name in (
        "dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")},
}  # fmt: skip
