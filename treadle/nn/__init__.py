"""Layers, losses, optimizers, and the state of models.

>>> from treadle import Tensor, nn
>>> nn.Linear(3, 2)(Tensor.ones(4, 3)).shape
(4, 2)
"""

from treadle.nn import functional, init, optim, utils
from treadle.nn.activations import GELU, LogSoftmax, ReLU, Sigmoid, SiLU, Softmax, Tanh
from treadle.nn.checkpoint import torch_load
from treadle.nn.containers import ModuleDict, ModuleList, Sequential
from treadle.nn.convolution import (
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from treadle.nn.layers import Dropout, Embedding, Flatten, Identity, Linear, Unflatten
from treadle.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
)
from treadle.nn.module import Module
from treadle.nn.norm import (
    BatchNorm,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    LayerNorm,
    RMSNorm,
)
from treadle.nn.parameter import Parameter
from treadle.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save

__all__ = [
    "GELU",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "RMSNorm",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "Unflatten",
    "functional",
    "get_parameters",
    "get_state_dict",
    "init",
    "load_state_dict",
    "optim",
    "safe_load",
    "safe_save",
    "torch_load",
    "utils",
]
