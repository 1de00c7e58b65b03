"""Names and arguments that people bring from PyTorch and that are something else here: what to
write instead.

The names stand in a message only: none of them is an attribute (`hasattr` is False).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container
from functools import wraps
from types import CodeType
from typing import Any, TypeVar, cast

from treadle.graph.public import METHODS

# treadle.name -> what to write
OF_MODULE = {
    "FloatTensor": "Tensor(data, dtype='float32')",
    "LongTensor": "Tensor(data, dtype='int64')",
    "autocast": "nn.amp.autocast",
    "autograd": "treadle.grad, or x.gradient(*targets)",
    "as_strided": "x[..], x.view(..), x.unfold(..): tensors have no strides here",
    "as_tensor": "Tensor(data)",
    "broadcast_shapes": "the shape of treadle.broadcast_arrays(..)[0]",
    "chain_matmul": "treadle.linalg.multi_dot(matrices)",
    "compile": "treadle.jit",
    "cuda": "x.to(device); there are CPU, C and INTERP",
    "device": "the name of a device, as in x.to('C')",
    "double": "treadle.float64",
    "eig": "treadle.linalg.eigh, which is for symmetric matrices",
    "float": "treadle.float32",
    "from_numpy": "Tensor(array)",
    "frombuffer": "Tensor(np.frombuffer(..))",
    "get_default_dtype": "treadle.float32",
    "half": "treadle.float16",
    "inference_mode": "treadle.no_grad",
    "int": "treadle.int32",
    "is_grad_enabled": "x.requires_grad of a result",
    "is_tensor": "isinstance(x, treadle.Tensor)",
    "load": "nn.safe_load, or nn.torch_load for a file of PyTorch's",
    "long": "treadle.int64",
    "lstsq": "treadle.linalg.lstsq",
    "lu": "treadle.linalg.lu_factor",
    "lu_solve": "treadle.linalg.lu_solve",
    "matrix_rank": "treadle.linalg.matrix_rank",
    "optim": "nn.optim",
    "promote_types": "treadle.result_type(a, b)",
    "range": "treadle.arange, which ends before its end",
    "scalar_tensor": "Tensor(number)",
    "seed": "treadle.manual_seed(n)",
    "set_default_dtype": "dtype= where a tensor is made, or .to(dtype) of a model",
    "set_num_threads": "THREADS in the environment",
    "save": "nn.safe_save(state_dict, path)",
    "set_grad_enabled": "treadle.no_grad or treadle.enable_grad",
    "short": "treadle.int16",
    "solve": "treadle.linalg.solve",
    "symeig": "treadle.linalg.eigh",
    "utils": "nn.utils",
    "vander": "treadle.linalg.vander(x), whose columns ascend",
}
# x.name -> what to write
OF_TENSOR = {
    "astype": "x.to(dtype), or treadle.astype(x, dtype)",
    "as_strided": "x[..], x.view(..) or x.unfold(..): tensors have no strides here",
    "as_strided_": "x[..] = value: tensors have no strides here",
    "apply_": "operations on whole tensors: there is no Python function of each element",
    "cuda": "x.to(device); there are CPU, C and INTERP",
    "data_ptr": "x.__dlpack__(), or x.numpy()",
    "coalesce": "x: tensors are dense here",
    "detach_": "x = x.detach()",
    "eig": "treadle.linalg.eigh(x), which is for symmetric matrices",
    "get_device": "x.device",
    "grad_fn": "treadle.explain(x), which says how x is computed",
    "indices": "x.argmax(dim) or x.argmin(dim): max(dim) and min(dim) give the values only",
    "is_cuda": "x.device",
    "is_cpu": "x.device",
    "is_nonzero": "bool(x)",
    "is_sparse": "nothing: tensors are dense here",
    "layout": "nothing: tensors are dense here",
    "lstsq": "treadle.linalg.lstsq(a, b)",
    "lu": "treadle.linalg.lu_factor(x)",
    "lu_solve": "treadle.linalg.lu_solve(LU, pivots, b)",
    "map_": "operations on whole tensors: there is no Python function of each element",
    "ndimension": "x.ndim",
    "nelement": "x.numel()",
    "new": "Tensor(data), or x.new_zeros(shape)",
    "new_tensor": "Tensor(data, dtype=x.dtype, device=x.device)",
    "pin_memory": "x: there is no copy to a device that it would speed up",
    "register_hook": "treadle.custom_vjp, a function with a derivative of your own",
    "retain_grad": "x.gradient(*targets), which gives the derivative by any tensor",
    "resize_": "x.reshape(shape), or a new tensor",
    "resolve_conj": "x: conjugation is computed, and no flag",
    "resolve_neg": "x: a sign is computed, and no flag",
    "set_": "x.assign(value)",
    "share_memory_": "x: the threads of one process share it",
    "solve": "treadle.linalg.solve(a, b)",
    "storage": "x.numpy()",
    "storage_offset": "0: tensors have no strides here, every one is contiguous",
    "stride": "x.shape: tensors have no strides here, every one is contiguous",
    "type": "x.cast(dtype), or x.dtype",
    "symeig": "treadle.linalg.eigh(x)",
    "to_dense": "x: tensors are dense here",
    "to_sparse": "x: tensors are dense here",
    "untyped_storage": "x.numpy()",
    "values": "x.max(dim) itself: max(dim) and min(dim) give the values only",
}
# layer.name -> what to write
OF_LAYERS = {
    "cuda": "layer.to(device); there are CPU, C and INTERP",
    "register_backward_hook": "treadle.custom_vjp in forward",
    "register_forward_hook": "what it does in the forward of a module around this one",
    "register_forward_pre_hook": "what it does in the forward of a module around this one",
    "register_full_backward_hook": "treadle.custom_vjp in forward",
    "share_memory": "the layer itself: the threads of one process share it",
    "type": "layer.to(dtype)",
}
# module, and what is not in it -> what to write
OF_PARTS = {
    "treadle.nn": {
        "Buffer": "a plain Tensor in an attribute; register_buffer(name, tensor, persistent=False)",
        "CrossMapLRN2d": "nn.LocalResponseNorm",
        "DataParallel": "the model itself: a program runs on one device",
        "LinearCrossEntropyLoss": "nn.Linear and nn.CrossEntropyLoss, which are fused anyway",
        "NLLLoss2d": "nn.NLLLoss",
        "RNNBase": "nn.RNN, nn.LSTM or nn.GRU",
        "SyncBatchNorm": "nn.BatchNorm2d: there is one process",
        "UninitializedParameter": "nn.LazyLinear and its like",
        "parallel": "the model itself: a program runs on one device",
    },
    "treadle.nn.optim": {
        "Adafactor": "nn.optim.Adam, or nn.optim.Lion, which keeps half of its state",
        "SparseAdam": "nn.optim.Adam: gradients are dense here",
    },
    "treadle.nn.utils": {
        "convert_conv2d_weight_memory_format": "nothing: layouts are chosen when it is compiled",
        "prune": "layer.weight * mask in your forward",
        "skip_init": "the layer itself: nothing is computed before it is needed",
        "stateless": "nn.load_state_dict, or treadle.grad over a dict of parameters",
    },
    "treadle.nn.utils.rnn": {
        "PackedSequence": "a padded tensor with its lengths",
        "pack_padded_sequence": "the padded tensor: mask what is behind the ends in the loss",
        "pad_packed_sequence": "pad_sequence",
    },
    "treadle.nn.functional": {
        "conv_tbc": "x.permute(1, 2, 0).conv1d(weight.permute(2, 1, 0))",
    },
}

_ANY = (None, False, True)
# argument -> the values that ask for what is done anyway (a str: PyTorch's constant of that name,
# too), and what to write for another
OF_ARGUMENTS: dict[str, tuple[tuple[Any, ...], str]] = {
    "align_to_window": ((None,), "center=True or False"),
    "capturable": (_ANY, ""),
    "chunk_size": ((None,), "treadle.vmap of parts of the batch, and Tensor.cat"),
    "differentiable": ((None, False), "the step as a function, and treadle.grad of it"),
    "driver": ((None,), "nothing: there is one algorithm"),
    "enable_nested_tensor": (_ANY, ""),
    "foreach": (_ANY, ""),
    "fused": (_ANY, ""),
    "generator": ((None,), "treadle.manual_seed(n) before the draw, which takes its key then"),
    "layout": ((None, "strided"), "nothing: every tensor is dense"),
    "mask_check": (_ANY, ""),
    "max_value": ((None,), "max_val"),
    "memory_format": (
        (None, "contiguous_format", "preserve_format"),
        "nothing: how values lie in memory is chosen when a program is compiled",
    ),
    "min_value": ((None,), "min_val"),
    "out": ((None,), "x[...] = the result, or x.assign(the result)"),
    "out_dtype": ((None,), "the product of operands that are cast to that dtype"),
    "pin_memory": ((None, False), "nothing: there is no copy to a device that it would speed up"),
    "reduce": ((None,), "reduction='mean', 'sum' or 'none'"),
    "size_average": ((None,), "reduction='mean', 'sum' or 'none'"),
    "to": ((), "low= and high="),
    "unbiased": ((), "correction=1 for unbiased=True, 0 for False"),
    "wrap": ((None, False), "a write of the diagonal of each square part"),
}

F = TypeVar("F", bound=Callable[..., Any])


def without_foreign(name: str, named: dict[str, Any], own: Container[str]) -> dict[str, Any]:
    """The keyword arguments of a call, without those that only PyTorch's function has and that ask
    for what is done anyway. NotImplementedError says what to write for any other value.

    own: the arguments that our function `name` has.
    """
    foreign = [key for key in named if key not in own and key in OF_ARGUMENTS]
    if not foreign:
        return named
    for key in foreign:
        same, instead = OF_ARGUMENTS[key]
        value = named[key]
        word = str(value).removeprefix("torch.") if type(value).__module__ == "torch" else value
        if not any(type(word) is type(each) and word == each for each in same):
            shown = repr(value) if isinstance(value, bool | int | str) else "(..)"
            raise NotImplementedError(f"{name}: {key}={shown} is not there: write {instead}")
    return {key: value for key, value in named.items() if key not in foreign}


def as_pytorch(function: F) -> F:
    """A function, or a class's `__init__`, to which the arguments in OF_ARGUMENTS may be given, and
    its first as `input`."""
    code: CodeType = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    own = [each for each in code.co_varnames[:count] if each != "self"]
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        if "input" in named and own and "input" not in own:
            named[own[0]] = named.pop("input")
        return function(*args, **without_foreign(name, named, own))

    return cast(F, run)


def of_part(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    message = f"module {module!r} has no attribute {name!r}"
    instead = OF_PARTS.get(module, {}).get(name)
    if instead is not None:
        return AttributeError(f"{message}: write {instead}")
    # with these two, Python says which name may have been meant
    return AttributeError(message, name=name, obj=sys.modules.get(module))


def of_module(name: str) -> AttributeError:
    """The error for `treadle.name`, which does not exist."""
    message = f"module 'treadle' has no attribute {name!r}"
    if name in OF_MODULE:
        return AttributeError(f"{message}: write {OF_MODULE[name]}")
    if name in METHODS:
        return AttributeError(f"{message}: it is a method, Tensor.{name}")
    return AttributeError(message, name=name, obj=sys.modules[__package__])


class Elsewhere:
    """What stands in the class of tensors for a name that it does not have. It costs nothing where
    a name is found, as a `__getattr__` would."""

    def __init__(self, name: str, instead: str, owner: str = "Tensor") -> None:
        self.message = f"{owner!r} object has no attribute {name!r}: write {instead}"

    def __get__(self, instance: Any, owner: type) -> Elsewhere:
        if instance is None:
            return self
        raise AttributeError(self.message)
