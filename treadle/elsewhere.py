"""Names that people bring from PyTorch and that are something else here: what to write instead.

They stand in a message only: none of them is an attribute (`hasattr` is False).
"""

from __future__ import annotations

import sys
from typing import Any

from treadle.graph.public import METHODS

# treadle.name -> what to write
OF_MODULE = {
    "FloatTensor": "Tensor(data, dtype='float32')",
    "LongTensor": "Tensor(data, dtype='int64')",
    "autocast": "nn.amp.autocast",
    "autograd": "treadle.grad, or x.gradient(*targets)",
    "as_tensor": "Tensor(data)",
    "compile": "treadle.jit",
    "cuda": "x.to(device); there are CPU, C and INTERP",
    "device": "the name of a device, as in x.to('C')",
    "double": "treadle.float64",
    "float": "treadle.float32",
    "half": "treadle.float16",
    "inference_mode": "treadle.no_grad",
    "int": "treadle.int32",
    "load": "nn.safe_load, or nn.torch_load for a file of PyTorch's",
    "long": "treadle.int64",
    "optim": "nn.optim",
    "save": "nn.safe_save(state_dict, path)",
    "set_grad_enabled": "treadle.no_grad or treadle.enable_grad",
    "short": "treadle.int16",
    "utils": "nn.utils",
}
# x.name -> what to write
OF_TENSOR = {
    "astype": "x.to(dtype), or treadle.astype(x, dtype)",
    "apply_": "operations on whole tensors: there is no Python function of each element",
    "cuda": "x.to(device); there are CPU, C and INTERP",
    "data_ptr": "x.__dlpack__(), or x.numpy()",
    "detach_": "x = x.detach()",
    "grad_fn": "treadle.explain(x), which says how x is computed",
    "indices": "x.argmax(dim) or x.argmin(dim): max(dim) and min(dim) give the values only",
    "is_cuda": "x.device",
    "register_hook": "treadle.custom_vjp, a function with a derivative of your own",
    "retain_grad": "x.gradient(*targets), which gives the derivative by any tensor",
    "storage": "x.numpy()",
    "stride": "x.shape: tensors have no strides here, every one is contiguous",
    "type": "x.cast(dtype), or x.dtype",
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
