"""Tensor as a user meets it: creation, values, operators, writing, gradients."""

from __future__ import annotations

import copy
import gc
import gzip
import pickle
import threading

import numpy as np
import pytest

import treadle
from treadle import Tensor
from treadle.engine.storage import memory


def test_python_data_takes_the_default_dtypes():
    assert Tensor(1.5).dtype is treadle.float32
    assert Tensor(3).dtype is treadle.int64
    assert Tensor(True).dtype is treadle.bool_
    assert Tensor([1, 2]).dtype is treadle.int64
    assert Tensor([1, 2.5]).dtype is treadle.float32
    assert Tensor([[True], [False]]).dtype is treadle.bool_
    assert Tensor([]).shape == (0,)
    assert Tensor(b"ab").tolist() == [97, 98]


def test_numpy_arrays_are_copied_in():
    array = np.arange(6, dtype=np.float64).reshape(2, 3)
    x = Tensor(array)
    array[:] = 0
    assert x.dtype is treadle.float64
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("dtype", [">f4", ">i8", ">u2"])
def test_byte_swapped_arrays_work(dtype):
    array = np.arange(5).astype(dtype)
    assert Tensor(array).tolist() == [0, 1, 2, 3, 4]


def test_arrays_that_are_not_contiguous_work():
    array = np.arange(24).reshape(4, 6)[::-2, 1::2]
    assert Tensor(array).tolist() == array.tolist()
    assert Tensor(np.broadcast_to(np.float32(2), (2, 2))).tolist() == [[2, 2], [2, 2]]


def test_numpy_gives_a_copy_of_ones_own():
    x = Tensor([1.0, 2.0])
    first = x.numpy()
    first[0] = 9
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([[1, 2], [3]], ValueError, "ragged"),
        ([2**70], (OverflowError, TypeError), "64 bits"),
        (["a"], TypeError, "not a number"),
        (object(), TypeError, "made from"),
    ],
)
def test_data_that_is_not_numbers_is_refused(data, error, words):
    with pytest.raises(error, match=words):
        Tensor(data)


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(TypeError, match="float33"):
        Tensor([1], dtype="float33")
    with pytest.raises(ValueError, match="no device"):
        Tensor([1], device="TOASTER")


def test_an_integer_that_does_not_fit_raises():
    with pytest.raises(OverflowError):
        Tensor([1], dtype="int8") + 300
    with pytest.raises(OverflowError):
        Tensor([300], dtype="int8")


def test_operators_agree_with_numpy():
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((2, 3, 4)).astype(np.float32)
    x, y = Tensor(a), Tensor(b)
    for result, expected in [
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (2 - x, 2 - a),
        (1 / y, 1 / b), (-x, -a), (abs(x), abs(a)), (x**2, a**2), (x @ y.T, a @ b.T),
        (x + b, a + b), (b + x, a + b), (x < y, a < b), (x >= 0, a >= 0), (x == x, a == a),
    ]:  # fmt: skip
        np.testing.assert_allclose(result.numpy(), expected, rtol=2e-6, atol=1e-6)


def test_printing_shows_the_numbers():
    assert repr(Tensor([1.0, 2.5])) == "Tensor([1. , 2.5])"
    assert repr(Tensor([1], dtype="int8")) == "Tensor([1], dtype=int8)"


def test_truth_needs_one_element():
    assert bool(Tensor([3]))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(Tensor([1, 2]))
    with pytest.raises(ValueError, match="one element"):
        Tensor([1, 2]).item()


def test_copies_and_pickles_are_independent():
    x = Tensor([1.0, 2.0], requires_grad=True)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.requires_grad
        assert other.tolist() == [1, 2]


# ---- writing -------------------------------------------------------------------------------------
def test_no_two_tensors_share_memory_that_a_write_shows_through():
    x = Tensor([1.0, 2.0, 3.0])
    y, view, same = x.detach(), x[1:], Tensor(x)
    x += 1
    x[0] = 9
    x.realize()
    assert x.tolist() == [9, 3, 4]
    assert y.tolist() == [1, 2, 3]
    assert view.tolist() == [2, 3]
    assert same.tolist() == [1, 2, 3]


def test_lazy_values_made_before_a_write_keep_the_old_value():
    x = Tensor(np.arange(4.0))
    x.realize()
    before = x * 10
    x.assign(x + 1)
    after = x * 10
    x.realize()
    assert before.tolist() == [0, 10, 20, 30]
    assert after.tolist() == [10, 20, 30, 40]


def test_swap_of_two_tensors():
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    a.realize(b)
    old = a.detach()
    a.assign(b)
    b.assign(old)
    a.realize(b)
    assert a.tolist() == [3, 4]
    assert b.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("target", "source"),
    [
        (slice(1, 3), slice(1, 3)),
        (slice(0, 2), slice(2, 4)),
        (slice(0, 3), slice(1, 4)),
        (slice(1, 4), slice(0, 3)),
    ],
)
def test_overlapping_regions_are_written_as_if_copied_first(target, source):
    array = np.arange(4.0)
    x = Tensor(array).realize()
    x[target] = x[source]
    expected = array.copy()
    expected[target] = array[source].copy()
    assert x.realize().tolist() == expected.tolist()


def test_assign_checks_shape_and_dtype():
    x = Tensor([1.0, 2.0])
    with pytest.raises(TypeError, match="cast"):
        x.assign(Tensor([1, 2]))
    with pytest.raises(ValueError):
        x.assign(Tensor([1.0, 2.0, 3.0]))


def test_a_parameter_is_not_changed_while_recording():
    w = Tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="no_grad"):
        w += 1
    with treadle.no_grad():
        w += 1
    assert w.tolist() == [2]
    (w * 3).sum().backward()
    assert w.grad.tolist() == [3]


# ---- gradients -----------------------------------------------------------------------------------
def test_backward_adds_up_in_grad():
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5, 7]


def test_equal_parameters_have_gradients_of_their_own():
    a, b = Tensor.ones(2, requires_grad=True), Tensor.ones(2, requires_grad=True)
    (a * 2 + b * 3).sum().backward()
    assert a.grad.tolist() == [2, 2]
    assert b.grad.tolist() == [3, 3]


def test_detach_and_no_grad_stop_gradients():
    x = Tensor([3.0], requires_grad=True)
    (x * x.detach()).sum().backward()
    assert x.grad.tolist() == [3]
    with treadle.no_grad():
        y = (x * x).sum()
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="requires_grad"):
        y.backward()


def test_backward_needs_one_element_or_a_cotangent():
    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="gradient="):
        (x * 2).backward()
    (x * 2).backward(gradient=Tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2, 20]


def test_gradients_of_any_order():
    third = treadle.grad(treadle.grad(treadle.grad(lambda x: x**4)))
    assert third(Tensor(2.0)).item() == 48
    inner = treadle.grad(lambda a: treadle.grad(lambda b: a * a * b)(a))
    assert inner(Tensor(3.0)).item() == 6


def test_a_gradient_at_a_singular_point_that_where_excludes_is_zero():
    x = Tensor([0.0, 4.0], requires_grad=True)
    treadle.Tensor.where(x == 0, Tensor(0.0), x * x.sqrt()).sum().backward()
    assert x.grad.tolist() == [0, 3]


# ---- memory --------------------------------------------------------------------------------------
def test_dropped_tensors_free_their_memory():
    gc.collect()
    before = len(memory.buffers)
    x = Tensor(np.zeros(1000))
    y = (x + 1).realize()
    assert len(memory.buffers) == before + 2
    del x, y
    gc.collect()
    assert len(memory.buffers) == before


def test_a_loop_that_reads_nothing_keeps_constant_memory():
    w = Tensor(np.ones(8), requires_grad=True)
    counts = []
    for _ in range(5):
        loss = (w * w).sum()
        w.grad = None
        loss.backward()
        with treadle.no_grad():
            w.assign(w - 0.1 * w.grad)
        w.realize()
        gc.collect()
        counts.append(len(memory.buffers))
    assert counts[2] == counts[4]
    np.testing.assert_allclose(w.numpy(), 0.8**5)


# ---- values that are read before the derivative is taken -----------------------------------------
def test_backward_works_after_the_value_was_read():
    x = Tensor([1.0, 2.0], requires_grad=True)
    hidden = (x * x).realize()
    loss = (hidden * 3).sum()
    assert loss.item() == 15
    assert loss.requires_grad
    loss.backward()
    assert x.grad.tolist() == [6, 12]


def test_backward_through_a_parameter_that_was_changed_since_raises():
    w = Tensor([2.0], requires_grad=True)
    loss = (w * w).sum()
    loss.item()
    with treadle.no_grad():
        w += 1
    w.realize()
    with pytest.raises(RuntimeError, match="overwritten"):
        loss.backward()


def test_a_value_read_inside_a_function_that_is_differentiated():
    def f(x):
        y = x * x
        return y * 2 if y.item() > 1 else y

    assert treadle.grad(f)(Tensor(3.0)).item() == 12


def test_in_place_addition_of_something_tracked_keeps_its_gradient():
    w = Tensor([2.0], requires_grad=True)
    total = Tensor([0.0]).realize()
    for _ in range(3):
        total += w * w
        total.realize()
    total.sum().backward()
    assert w.grad.tolist() == [12]


def test_a_graph_made_before_an_in_place_change_keeps_its_gradient():
    x = Tensor([1.0, 2.0], requires_grad=True)
    w = Tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    with treadle.no_grad():
        x[0] = 30.0
    y.sum().backward()
    assert x.grad.tolist() == [3, 4]
    assert w.grad.tolist() == [1, 2]
    assert x.tolist() == [30, 2]


def test_grad_records_inside_no_grad():
    with treadle.no_grad():
        assert treadle.grad(lambda x: (x * x).sum())(Tensor([3.0])).tolist() == [6]


def test_functions_that_are_flat_almost_everywhere_have_gradient_zero():
    x = Tensor([1.5, -0.5], requires_grad=True)
    (x.floor() + x.ceil() + x.round() + x.trunc()).sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_a_path_without_a_derivative_says_so():
    x = Tensor([1.5, -0.5], requires_grad=True)
    with pytest.raises(RuntimeError, match="no gradient flows"):
        x.argmax().float().backward()


def test_formatting_one_element():
    assert f"{Tensor(1.23456):.3f} {Tensor([2]):d}" == "1.235 2"


def test_a_value_inside_a_scan_cannot_be_read():
    with pytest.raises(RuntimeError, match="body of scan"):
        treadle.scan(lambda c, x: (c + x.item(), c), Tensor(0.0), Tensor.ones(3))


def test_an_array_joins_the_device_of_the_tensor_beside_it():
    x = Tensor([1.0, 2.0], device="INTERP")
    assert (x + np.float32([1, 1])).tolist() == [2, 3]
    assert (np.float32([1, 1]) + x).device == "INTERP"
    assert x[np.array([1, 0])].tolist() == [2, 1]


# computed from x, and found to be a constant while the graph was made
FOLDED = {
    "where": lambda x: treadle.where(Tensor(False), x, Tensor(5.0)),
    "median of nothing": lambda x: x[0:0].median(),
    "power": lambda x: x**0,
    "power of a matrix": lambda x: treadle.linalg.matrix_power(x[:, :2], 0),
    "power of a complex matrix": lambda x: treadle.linalg.matrix_power(x[:, :2] * 1j, 0).real,
    "imaginary part": lambda x: x.imag,
    "no reflection": lambda x: treadle.linalg.householder_product(x.T[:, :2], x[0, :0]),
    "carry of no step": lambda x: treadle.scan(
        lambda carry, y: (carry + y.sum() + x.sum(), y), Tensor(1.0), x[0:0]
    )[0],
    "results of no step": lambda x: treadle.scan(
        lambda carry, y: (carry, y * x), Tensor(1.0), Tensor.ones(0, 3)
    )[1],
    "draw": lambda x: x.sigmoid().bernoulli(),
}


@pytest.mark.parametrize("name", FOLDED)
def test_what_folds_away_has_a_gradient_of_zeros(name):
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    loss = FOLDED[name](x).sum()
    assert loss.requires_grad
    loss.item()
    loss.backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros((2, 3)))
    found = treadle.grad(lambda x: FOLDED[name](x).sum())(x.detach())
    np.testing.assert_array_equal(found.numpy(), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="does not depend"):
        loss.gradient(Tensor([1.0]))


def test_no_grad_is_of_one_thread():
    entered, left = threading.Event(), threading.Event()

    def work():
        with treadle.no_grad():
            entered.set()
            left.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(10)
    try:
        x = Tensor([2.0], requires_grad=True)
        assert (x * x).requires_grad
    finally:
        left.set()
        thread.join()


# ---- from elsewhere ------------------------------------------------------------------------------
def test_from_memory_and_from_an_address(tmp_path):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = Tensor.from_blob(array.ctypes.data, (2, 3))
    array[:] = 0
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    half = np.float32([1.0, -2.0]).view(np.uint16)[1::2].copy()  # the upper halves are bfloat16
    assert Tensor.from_blob(half.ctypes.data, (2,), "bfloat16").tolist() == [1, -2]
    with pytest.raises(ValueError, match="from_blob: the address"):
        Tensor.from_blob(0, (2,))
    with pytest.raises(ValueError, match="negative size"):
        Tensor.from_blob(array.ctypes.data, (-2,))
    path = tmp_path / "bytes"
    path.write_bytes(b"abc")
    assert Tensor.from_url(path.as_uri()).tolist() == list(b"abc")
    path.write_bytes(gzip.compress(b"abcd"))
    assert Tensor.from_url(path.as_uri(), gunzip=True, dtype="int32").tolist() == list(b"abcd")
    with pytest.raises(OSError):
        Tensor.from_url((tmp_path / "nothing").as_uri())


def test_random_numbers_in_place():
    treadle.manual_seed(4)
    x = Tensor.zeros(4000)
    assert x.uniform_(2, 3) is x
    assert 2.4 < x.mean().item() < 2.6
    assert abs(x.normal_(1, 2).std().item() - 2) < 0.1
    assert abs(x.exponential_(4).mean().item() - 0.25) < 0.03
    assert abs(x.bernoulli_(0.25).mean().item() - 0.25) < 0.03
    assert Tensor([5, 5]).bernoulli_(Tensor([1.0, 0.0])).tolist() == [1, 0]
    with pytest.raises(TypeError, match="do not go into a tensor of int64"):
        Tensor([1]).normal_()
    with pytest.raises(ValueError, match="exponential_: the rate"):
        x.exponential_(0)


def test_a_gradient_is_given_only_if_it_fits() -> None:
    x = Tensor.ones(2, 3, requires_grad=True)
    for wrong, error, words in (
        (Tensor.ones(3), ValueError, r"x.grad: a gradient of shape \(3,\) for a tensor of shape"),
        (Tensor.ones(2, 3, dtype="float64"), TypeError, r"cast it: \.cast\(float32\)"),
        (Tensor.ones(2, 3, device="INTERP"), ValueError, "move it"),
        (np.ones((2, 3), np.float32), TypeError, "is a Tensor or None, not a ndarray"),
    ):
        with pytest.raises(error, match=words):
            x.grad = wrong
        assert x.grad is None
    x.grad = Tensor.full((2, 3), 2.0)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [[5.0] * 3] * 2
    x.grad = None
    assert x.grad is None
    del x.grad
    assert x.grad is None


def test_the_function_tensor_makes_a_tensor_that_nothing_flows_back_from() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    copy = treadle.tensor(w)
    assert not copy.requires_grad
    assert copy.tolist() == [1.0, 2.0]
    assert treadle.tensor([1, 2], dtype="float64", requires_grad=True).requires_grad
    assert treadle.tensor(3).item() == 3


def test_what_is_computed_again_overwrites_nothing() -> None:
    """The update of `u` waits: the old value is a factor of y."""
    w, u = Tensor([2.0, 3.0], requires_grad=True), Tensor([1.0, 1.0]).realize()
    found = []
    for _ in range(3):
        w.grad = None
        with treadle.no_grad():
            u.assign(u * 0.5 + w.detach())
        y = w * u.detach().clone()
        y.numpy()
        (y**2).sum().backward()
        found.append(w.grad.tolist())
    assert found == [[25.0, 73.5], [42.25, 135.375], [52.5625, 173.34375]]
