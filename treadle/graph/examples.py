"""Examples of the public functions that other functions make, where no docstring is written out."""

from __future__ import annotations

EXAMPLES = {
    "adaptive_avg_pool1d": """
>>> Tensor([[[1.0, 3.0, 5.0, 7.0]]]).adaptive_avg_pool1d(2)
Tensor([[[2., 6.]]])
""",
    "adaptive_avg_pool2d": """
>>> Tensor.ones(1, 3, 7, 9).adaptive_avg_pool2d((1, 1)).shape
(1, 3, 1, 1)
""",
    "adaptive_avg_pool3d": """
>>> Tensor.ones(1, 3, 4, 4, 4).adaptive_avg_pool3d(2).shape
(1, 3, 2, 2, 2)
""",
    "adaptive_max_pool1d": """
>>> Tensor([[[1.0, 3.0, 5.0, 7.0]]]).adaptive_max_pool1d(2)
Tensor([[[3., 7.]]])
""",
    "adaptive_max_pool2d": """
>>> Tensor.ones(1, 3, 7, 9).adaptive_max_pool2d((1, 1)).shape
(1, 3, 1, 1)
""",
    "adaptive_max_pool3d": """
>>> Tensor.ones(1, 3, 4, 4, 4).adaptive_max_pool3d(2).shape
(1, 3, 2, 2, 2)
""",
    "argmax": """
>>> Tensor([[1, 5, 2], [9, 0, 3]]).argmax(1)
Tensor([1, 0])
""",
    "argmin": """
>>> Tensor([[1, 5, 2], [9, 0, 3]]).argmin(1)
Tensor([0, 1])
""",
    "atan": """
>>> Tensor([0.0, 1.0]).atan()
Tensor([0.       , 0.7853982])
""",
    "atleast_1d": """
>>> Tensor.atleast_1d(Tensor(3)).shape
(1,)
""",
    "atleast_2d": """
>>> Tensor.atleast_2d(Tensor([1, 2])).shape
(1, 2)
""",
    "atleast_3d": """
>>> Tensor.atleast_3d(Tensor([[1, 2]])).shape
(1, 2, 1)
""",
    "avg_pool1d": """
>>> Tensor([[[1.0, 3.0, 5.0, 7.0]]]).avg_pool1d(2)
Tensor([[[2., 6.]]])
""",
    "avg_pool2d": """
>>> Tensor.ones(1, 3, 8, 8).avg_pool2d(2).shape
(1, 3, 4, 4)
""",
    "avg_pool3d": """
>>> Tensor.ones(1, 3, 4, 4, 4).avg_pool3d(2).shape
(1, 3, 2, 2, 2)
""",
    "bitwise_and": """
>>> Tensor([6, 5]) & 3
Tensor([2, 1])
""",
    "bitwise_left_shift": """
>>> Tensor([1, 2]) << 3
Tensor([ 8, 16])
""",
    "bitwise_or": """
>>> Tensor([6, 5]) | 3
Tensor([7, 7])
""",
    "bitwise_right_shift": """
>>> Tensor([8, -8]) >> 2
Tensor([ 2, -2])
""",
    "bitwise_xor": """
>>> Tensor([6, 5]) ^ 3
Tensor([5, 6])
""",
    "ceil": """
>>> Tensor([-1.5, 1.5]).ceil()
Tensor([-1.,  2.])
""",
    "conv1d": """
>>> Tensor([[[1.0, 2.0, 3.0, 4.0]]]).conv1d(Tensor([[[1.0, 1.0]]]))
Tensor([[[3., 5., 7.]]])
""",
    "conv2d": """
>>> Tensor.ones(1, 3, 8, 8).conv2d(Tensor.ones(4, 3, 3, 3), padding=1).shape
(1, 4, 8, 8)
""",
    "conv3d": """
>>> Tensor.ones(1, 2, 5, 5, 5).conv3d(Tensor.ones(4, 2, 3, 3, 3)).shape
(1, 4, 3, 3, 3)
""",
    "conv_transpose1d": """
>>> Tensor([[[1.0, 2.0]]]).conv_transpose1d(Tensor([[[1.0, 1.0]]]), stride=2)
Tensor([[[1., 1., 2., 2.]]])
""",
    "conv_transpose2d": """
>>> Tensor.ones(1, 3, 4, 4).conv_transpose2d(Tensor.ones(3, 2, 2, 2), stride=2).shape
(1, 2, 8, 8)
""",
    "conv_transpose3d": """
>>> x = Tensor.ones(1, 3, 2, 2, 2)
>>> x.conv_transpose3d(Tensor.ones(3, 2, 2, 2, 2), stride=2).shape
(1, 2, 4, 4, 4)
""",
    "cos": """
>>> Tensor([0.0]).cos()
Tensor([1.])
""",
    "cummax": """
>>> Tensor([1, 3, 2]).cummax(0)
ValuesIndices(values=Tensor([1, 3, 3]), indices=Tensor([0, 1, 1]))
""",
    "cummin": """
>>> Tensor([2, 3, 1]).cummin(0)
ValuesIndices(values=Tensor([2, 2, 1]), indices=Tensor([0, 0, 2]))
""",
    "cumulative_prod": """
>>> treadle.cumulative_prod(Tensor([1, 2, 3]))
Tensor([1, 2, 6])
""",
    "cumulative_sum": """
>>> treadle.cumulative_sum(Tensor([1, 2, 3]), include_initial=True)
Tensor([0, 1, 3, 6])
""",
    "digamma": """
>>> Tensor([1.0]).digamma()
Tensor([-0.5772157])
""",
    "dsplit": """
>>> [part.shape for part in Tensor.ones(2, 3, 4).dsplit(2)]
[(2, 3, 2), (2, 3, 2)]
""",
    "eq": """
>>> Tensor([1, 2]) == 2
Tensor([False,  True])
""",
    "erf": """
>>> Tensor([0.0, 100.0]).erf()
Tensor([0., 1.])
""",
    "erfc": """
>>> Tensor([0.0, 100.0]).erfc()
Tensor([1., 0.])
""",
    "erfinv": """
>>> Tensor([0.0, 1.0]).erfinv()
Tensor([ 0., inf])
""",
    "exp": """
>>> Tensor([0.0, 1.0]).exp()
Tensor([1.       , 2.7182817])
""",
    "exp2": """
>>> Tensor([0.0, 3.0]).exp2()
Tensor([1., 8.])
""",
    "expm1": """
>>> Tensor([0.0, 1e-20]).expm1()
Tensor([0.e+00, 1.e-20])
""",
    "floor": """
>>> Tensor([-1.5, 1.5]).floor()
Tensor([-2.,  1.])
""",
    "ge": """
>>> Tensor([1, 2]) >= 2
Tensor([False,  True])
""",
    "gt": """
>>> Tensor([1, 2]) > 1
Tensor([False,  True])
""",
    "hsplit": """
>>> Tensor([1, 2, 3, 4]).hsplit([1])
(Tensor([1]), Tensor([2, 3, 4]))
""",
    "le": """
>>> Tensor([1, 2]) <= 1
Tensor([ True, False])
""",
    "lgamma": """
>>> Tensor([1.0, 5.0]).lgamma()
Tensor([0.       , 3.1780539])
""",
    "log": """
>>> Tensor([1.0, 0.0]).log()
Tensor([  0., -inf])
""",
    "log1p": """
>>> Tensor([0.0, 1e-20]).log1p()
Tensor([0.e+00, 1.e-20])
""",
    "log2": """
>>> Tensor([8.0, 0.5]).log2()
Tensor([ 3., -1.])
""",
    "logical_and": """
>>> Tensor([0, 1, 2]).logical_and(Tensor([1, 0, 1]))
Tensor([False, False,  True])
""",
    "logical_or": """
>>> Tensor([0, 0, 2]).logical_or(Tensor([1, 0, 1]))
Tensor([ True, False,  True])
""",
    "logical_xor": """
>>> Tensor([0, 0, 2]).logical_xor(Tensor([1, 0, 1]))
Tensor([ True, False, False])
""",
    "lp_pool1d": """
>>> Tensor([[[3.0, 4.0, 6.0, 8.0]]]).lp_pool1d(2, 2)
Tensor([[[ 5., 10.]]])
""",
    "lp_pool2d": """
>>> Tensor.ones(1, 3, 8, 8).lp_pool2d(2, 2).shape
(1, 3, 4, 4)
""",
    "lp_pool3d": """
>>> Tensor.ones(1, 3, 4, 4, 4).lp_pool3d(2, 2).shape
(1, 3, 2, 2, 2)
""",
    "lt": """
>>> Tensor([1, 2]) < 2
Tensor([ True, False])
""",
    "max": """
>>> Tensor([[1, 5], [9, 0]]).max(1)
Tensor([5, 9])
""",
    "max_pool1d": """
>>> Tensor([[[1.0, 3.0, 7.0, 5.0]]]).max_pool1d(2)
Tensor([[[3., 7.]]])
""",
    "max_pool2d": """
>>> Tensor.ones(1, 3, 8, 8).max_pool2d(2).shape
(1, 3, 4, 4)
""",
    "max_pool3d": """
>>> Tensor.ones(1, 3, 4, 4, 4).max_pool3d(2).shape
(1, 3, 2, 2, 2)
""",
    "max_unpool1d": """
>>> largest, places = Tensor([[[1.0, 3.0, 7.0, 5.0]]]).max_pool1d(2, return_indices=True)
>>> largest.max_unpool1d(places, 2)
Tensor([[[0., 3., 7., 0.]]])
""",
    "max_unpool2d": """
>>> largest, places = Tensor.ones(1, 3, 8, 8).max_pool2d(2, return_indices=True)
>>> largest.max_unpool2d(places, 2).shape
(1, 3, 8, 8)
""",
    "max_unpool3d": """
>>> largest, places = Tensor.ones(1, 3, 4, 4, 4).max_pool3d(2, return_indices=True)
>>> largest.max_unpool3d(places, 2).shape
(1, 3, 4, 4, 4)
""",
    "median": """
>>> Tensor([5, 1, 4, 3]).median()
Tensor(3)
""",
    "min": """
>>> Tensor([[1, 5], [9, 0]]).min(1)
Tensor([1, 0])
""",
    "nanmedian": """
>>> Tensor([5.0, float("nan"), 4.0]).nanmedian()
Tensor(4.)
""",
    "ne": """
>>> Tensor([1, 2]) != 2
Tensor([ True, False])
""",
    "sin": """
>>> Tensor([0.0]).sin()
Tensor([0.])
""",
    "sqrt": """
>>> Tensor([4.0, -1.0]).sqrt()
Tensor([ 2., nan])
""",
    "std_mean": """
>>> Tensor([1.0, 2.0, 3.0]).std_mean()
(Tensor(1.), Tensor(2.))
""",
    "tan": """
>>> Tensor([0.0]).tan()
Tensor([0.])
""",
    "tanh": """
>>> Tensor([0.0, 100.0]).tanh()
Tensor([0., 1.])
""",
    "tril_indices": """
>>> Tensor.tril_indices(2, 2)
Tensor([[0, 1, 1],
        [0, 0, 1]])
""",
    "triu_indices": """
>>> Tensor.triu_indices(2, 2)
Tensor([[0, 0, 1],
        [0, 1, 1]])
""",
    "trunc": """
>>> Tensor([-1.5, 1.5]).trunc()
Tensor([-1.,  1.])
""",
    "unique_all": """
>>> treadle.unique_all(Tensor([5, 3, 5]))[1]
Tensor([1, 0])
""",
    "unique_counts": """
>>> treadle.unique_counts(Tensor([5, 3, 5]))[1]
Tensor([1, 2])
""",
    "unique_inverse": """
>>> treadle.unique_inverse(Tensor([5, 3, 5]))[1]
Tensor([1, 0, 1])
""",
    "unique_values": """
>>> treadle.unique_values(Tensor([5, 3, 5]))
Tensor([3, 5])
""",
    "var_mean": """
>>> Tensor([1.0, 2.0, 3.0]).var_mean()
(Tensor(1.), Tensor(2.))
""",
    "vsplit": """
>>> [part.shape for part in Tensor.ones(4, 3).vsplit(2)]
[(2, 3), (2, 3)]
""",
}
