"""Libraries that take any array of the Array API standard: scikit-learn and SciPy give for tensors
what they give for NumPy's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as xp
from treadle import Tensor

# (tests/conftest.py sets SCIPY_ARRAY_API before anything imports SciPy)
pytest.importorskip("scipy", reason="needs SciPy: make test-full")
pytest.importorskip("array_api_compat", reason="needs array-api-compat: make test-full")
sklearn = pytest.importorskip("sklearn", reason="needs scikit-learn: make test-full")
pytestmark = pytest.mark.full

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) + 2 * RNG.integers(0, 3, (60, 1))
CLASSES = (X[:, 0] > 2).astype(np.int64) + (X[:, 1] > 2)
TARGETS = X @ RNG.normal(size=4) + 0.1 * RNG.normal(size=60)
SCORES = RNG.random(60)


def tensors(value: Any) -> Any:
    return xp.asarray(value) if isinstance(value, np.ndarray) else value


def check(got: Any, want: Any, is_tensor: bool = True) -> None:
    """The same numbers, in tensors where NumPy's are in arrays."""
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            check(one, other, is_tensor)
        return
    if isinstance(want, np.ndarray) and is_tensor:
        assert isinstance(got, Tensor)
    numbers = got.numpy() if isinstance(got, Tensor) else np.asarray(got)
    np.testing.assert_allclose(numbers, want, rtol=1e-6, atol=1e-9)


# ---- scikit-learn --------------------------------------------------------------------------------
def discriminant(X: Any, classes: Any, targets: Any, scores: Any) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    model = LinearDiscriminantAnalysis(solver="svd").fit(X, classes)
    return abs(model.transform(X)), model.predict(X), model.predict_proba(X)


def components(solver: str) -> Callable[..., Any]:
    def run(X: Any, classes: Any, targets: Any, scores: Any) -> Any:
        from sklearn.decomposition import PCA

        model = PCA(2, svd_solver=solver, random_state=0, power_iteration_normalizer="QR").fit(X)
        return abs(model.transform(X)), model.explained_variance_

    return run


def ridge(X: Any, classes: Any, targets: Any, scores: Any) -> Any:
    from sklearn.linear_model import Ridge

    model = Ridge(solver="svd").fit(X, targets)
    return model.coef_, model.predict(X), model.score(X, targets)


def mixture(kind: str) -> Callable[..., Any]:
    def run(X: Any, classes: Any, targets: Any, scores: Any) -> Any:
        from sklearn.mixture import GaussianMixture

        model = GaussianMixture(
            3, covariance_type=kind, init_params="random_from_data", random_state=0, max_iter=30
        ).fit(X)
        return model.means_, model.predict(X)

    return run


def prepared(X: Any, classes: Any, targets: Any, scores: Any) -> Any:
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    return train_test_split(StandardScaler().fit_transform(X), classes, random_state=0)


def metrics(X: Any, classes: Any, targets: Any, scores: Any) -> Any:
    from sklearn import metrics

    is_first = (
        xp.astype(classes > 0, xp.int64) if isinstance(classes, Tensor) else 1 * (classes > 0)
    )
    return [
        metrics.confusion_matrix(classes, (classes + 1) % 3),
        metrics.f1_score(classes, (classes * 2) % 3, average="macro"),
        metrics.roc_auc_score(is_first, scores),
        metrics.r2_score(targets, targets + scores),
        metrics.pairwise.rbf_kernel(X[:10], X[10:]),
        metrics.pairwise.cosine_similarity(X[:10], X[10:]),
    ]


LEARNT = {
    "discriminant": discriminant,
    **{f"components {solver}": components(solver) for solver in ("full", "randomized")},
    "ridge": ridge,
    **{f"mixture {kind}": mixture(kind) for kind in ("tied", "diag", "spherical")},
    "prepared": prepared,
    "metrics": metrics,
}


@pytest.mark.parametrize("name", LEARNT)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(name: str) -> None:
    given = (X, CLASSES, TARGETS, SCORES)
    with sklearn.config_context(array_api_dispatch=True):
        want = LEARNT[name](*given)
        check(LEARNT[name](*map(tensors, given)), want)


# ---- SciPy ---------------------------------------------------------------------------------------
def rates(name: str, *more: Any, **named: Any) -> Callable[..., Any]:
    def run(*arrays: Any) -> Any:
        from scipy import stats

        return tuple(getattr(stats, name)(*arrays, *more, **named))

    return run


def of(module: str, name: str, *more: Any, **named: Any) -> Callable[..., Any]:
    def run(*arrays: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(f"scipy.{module}"), name)(*arrays, *more, **named)

    return run


def _matrices(quaternions: Any) -> Any:
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(quaternions).as_matrix()


def _derivative(x: Any) -> Any:
    from scipy.differentiate import derivative

    return derivative(lambda t: t**3, x).df


ROWS, OTHERS = RNG.normal(size=(4, 9)), RNG.normal(size=(4, 9))
LINE, SHORT = ROWS.reshape(-1), OTHERS[0]
PLACES = np.linspace(0, 1, 9)
ROTATION = RNG.normal(size=(3, 4))
CALLS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "skew": (of("stats", "skew", axis=1), (ROWS,)),
    "ttest_ind": (rates("ttest_ind", axis=1), (ROWS, OTHERS)),
    "normaltest": (rates("normaltest"), (LINE,)),
    "zscore": (of("stats", "zscore"), (ROWS,)),
    "logsumexp": (of("special", "logsumexp", axis=1), (ROWS,)),
    "gammainc": (of("special", "gammainc"), (abs(ROWS) + 0.1, abs(OTHERS))),
    "ndtri": (of("special", "ndtri"), (PLACES[1:-1],)),
    "hilbert": (of("signal", "hilbert"), (LINE,)),
    "fftconvolve": (of("signal", "fftconvolve"), (LINE, SHORT)),
    "detrend": (of("signal", "detrend"), (ROWS,)),
    "dct": (of("fft", "dct"), (ROWS,)),
    "irfftn": (of("fft", "irfftn"), (ROWS + 1j * OTHERS,)),
    "vq": (of("cluster.vq", "vq"), (X, X[:3])),
    "kmeans2": (of("cluster.vq", "kmeans2", minit="matrix"), (X, X[:2])),
    "trapezoid": (of("integrate", "trapezoid"), (ROWS,)),
    "block_diag": (of("linalg", "block_diag"), (ROWS[:2], OTHERS)),
    "spline": (
        lambda x, y: of("interpolate", "CubicSpline")(x, y)(x * 0.9),
        (PLACES, np.sin(PLACES)),
    ),
    "rotation": (_matrices, (ROTATION,)),
    "derivative": (_derivative, (PLACES,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_scipy(name: str) -> None:
    function, arrays = CALLS[name]
    check(function(*map(tensors, arrays)), function(*arrays))
