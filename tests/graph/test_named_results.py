"""Named tuples of results: their fields, and that they stay what they are on every way."""

import copy

import numpy as np
import pytest

import treadle
from treadle import Tensor, cond, grad, jit, jvp, linalg, vjp, vmap

SQUARE = Tensor([[2.0, 1.0], [1.0, 3.0]])
ROW = Tensor([3, 1, 3])
FIELDS = {
    "eigenvalues eigenvectors": [lambda: linalg.eigh(SQUARE)],
    "U S Vh": [lambda: linalg.svd(SQUARE), lambda: linalg.svd(SQUARE[:1])],
    "U S V": [lambda: SQUARE.svd(), lambda: SQUARE.svd(compute_uv=False)],
    "Q R": [lambda: linalg.qr(SQUARE), lambda: SQUARE.qr()],
    "P L U": [lambda: linalg.lu(SQUARE)],
    "LU pivots": [lambda: linalg.lu_factor(SQUARE)],
    "LU pivots info": [lambda: linalg.lu_factor_ex(SQUARE)],
    "L info": [lambda: linalg.cholesky_ex(SQUARE)],
    "inverse info": [lambda: linalg.inv_ex(SQUARE)],
    "result info": [lambda: linalg.solve_ex(SQUARE, SQUARE)],
    "sign logabsdet": [lambda: linalg.slogdet(SQUARE), lambda: SQUARE.slogdet()],
    "solution residuals rank singular_values": [lambda: linalg.lstsq(SQUARE, SQUARE)],
    "solution cloned_coefficient": [lambda: SQUARE.triangular_solve(SQUARE)],
    "min max": [lambda: ROW.aminmax()],
    "values indices": [
        lambda: ROW.sort(),
        lambda: ROW.topk(2),
        lambda: ROW.kthvalue(2),
        lambda: ROW.mode(),
        lambda: ROW.median(0),
        lambda: ROW.nanmedian(0),
        lambda: ROW.cummax(0),
        lambda: ROW.cummin(0),
    ],
    "values indices inverse_indices counts": [lambda: treadle.unique_all(ROW)],
    "values inverse_indices": [lambda: treadle.unique_inverse(ROW)],
    "values counts": [lambda: treadle.unique_counts(ROW)],
}


@pytest.mark.parametrize("fields", FIELDS)
def test_fields(fields):
    for call in FIELDS[fields]:
        found = call()
        assert isinstance(found, tuple)
        assert found._fields == tuple(fields.split())
        for name, part in zip(found._fields, found, strict=True):
            assert getattr(found, name) is part
            assert isinstance(part, Tensor)


def test_functions_of_functions_keep_them():
    wanted = linalg.eigh(SQUARE)
    batch = Tensor.stack(SQUARE, SQUARE)
    once = jit(linalg.eigh)
    results = [once(SQUARE), once(SQUARE), jvp(linalg.eigh, (SQUARE,), (SQUARE,))[0]]
    results += [vjp(linalg.eigh, SQUARE)[0], copy.deepcopy(wanted)]
    for found in results:
        assert type(found) is type(wanted)
        assert np.allclose(found.eigenvectors.numpy(), wanted.eigenvectors.numpy())
    many = vmap(linalg.eigh, out_axes=(0, 1))(batch)
    assert type(many) is type(wanted)
    assert many.eigenvectors.shape == (2, 2, 2)
    chosen = cond(Tensor(True), linalg.qr, lambda x: linalg.qr(x + 1), SQUARE)
    assert np.allclose((chosen.Q @ chosen.R).numpy(), SQUARE.numpy())
    assert grad(lambda x: linalg.slogdet(x).logabsdet)(SQUARE).shape == (2, 2)


def test_a_tuple_may_stand_for_a_named_one():
    found, pull = vjp(linalg.qr, SQUARE)
    (named,), (plain,) = pull(found), pull(tuple(found))
    assert np.array_equal(named.numpy(), plain.numpy())
    with pytest.raises(ValueError, match="structure"):
        pull([*found])


def test_numpy_functions_take_them():
    assert np.concatenate(linalg.qr(SQUARE)).shape == (4, 2)
