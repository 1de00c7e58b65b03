"""Attention with several heads, and the layers of transformers. The names in their state dicts are
those of PyTorch."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from treadle import elsewhere
from treadle.nn import begin, init
from treadle.nn.attention import multi_head_attention_forward
from treadle.nn.begin import Dtype
from treadle.nn.containers import ModuleList
from treadle.nn.dropping import Dropout
from treadle.nn.layers import Linear
from treadle.nn.module import Module
from treadle.nn.norm import LayerNorm
from treadle.tensor import Tensor

Activation = str | Callable[[Tensor], Tensor]  # "relu", "gelu" or a function


class MultiheadAttention(Module):
    """Attention of queries to keys and values, by `num_heads` heads between learnt projections.

    Called with query (length, batch, embed_dim), key (source, batch, kdim) and value (source,
    batch, vdim), the batch in front with batch_first, or missing; gives the result, and the
    attention or None. See `functional.multi_head_attention_forward` for the masks, in which True
    is what is not attended to. bias: of the projections. add_bias_kv: learn one more key and value.
    Source: Vaswani et al., "Attention is all you need", 2017.

    >>> x = Tensor.ones(5, 2, 8)
    >>> output, weights = nn.MultiheadAttention(8, 2)(x, x, x)
    >>> output.shape, weights.shape
    ((5, 2, 8), (2, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        begin.check_sizes(self, embed_dim=embed_dim, num_heads=num_heads)
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention: num_heads={num_heads} must divide embed_dim={embed_dim}"
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn

        def weight(*shape: int) -> Tensor:
            return init.xavier_uniform_(begin.filled(0, shape, dtype, device))

        self._separate = (self.kdim, self.vdim) != (embed_dim, embed_dim)
        self.in_proj_weight = None if self._separate else weight(3 * embed_dim, embed_dim)
        self.q_proj_weight = weight(embed_dim, embed_dim) if self._separate else None
        self.k_proj_weight = weight(embed_dim, self.kdim) if self._separate else None
        self.v_proj_weight = weight(embed_dim, self.vdim) if self._separate else None
        self.in_proj_bias = begin.filled(0, (3 * embed_dim,), dtype, device) if bias else None
        self.bias_k = self.bias_v = None
        if add_bias_kv:
            more = (1, 1, embed_dim)
            self.bias_k = init.xavier_normal_(begin.filled(0, more, dtype, device))
            self.bias_v = init.xavier_normal_(begin.filled(0, more, dtype, device))
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        if bias:
            self.out_proj.bias = begin.filled(0, (embed_dim,), dtype, device)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        swaps = self.batch_first and query.ndim == 3
        if swaps:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        result, attention = multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            self._separate,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (result.transpose(0, 1) if swaps else result), attention

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, num_heads={self.num_heads}, batch_first={self.batch_first}"


# ---- layers --------------------------------------------------------------------------------------
class _Layer(Module):
    """What encoder and decoder layers have in common: a network of two maps, and residual parts."""

    linear1: Linear
    linear2: Linear
    dropout: Dropout
    activation: Callable[[Tensor], Tensor]
    norm_first: bool

    def _added(
        self,
        x: Tensor,
        norm: LayerNorm,
        dropout: Dropout,
        part: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """x plus a part of it, normalised before or after."""
        result: Tensor
        result = x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))
        return result

    def _network(self, x: Tensor) -> Tensor:
        hidden = self.activation(self.linear1(x))
        result: Tensor = self.linear2(self.dropout(hidden))
        return result


def activation_of(name: str, activation: Activation) -> Callable[[Tensor], Tensor]:
    """The function that a layer's argument `activation` means."""
    known: dict[str, Callable[[Tensor], Tensor]] = {"relu": Tensor.relu, "gelu": Tensor.gelu}
    if not isinstance(activation, str):
        return activation
    if activation not in known:
        raise ValueError(f"{name}: activation is 'relu', 'gelu' or a function, not {activation!r}")
    return known[activation]


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, and a network of two maps; each is added to what came in.

    src: (length, batch, d_model), or the batch in front with batch_first, or none. src_mask and
    src_key_padding_mask: see `MultiheadAttention`. norm_first: normalise before each part, not
    after. activation: "relu", "gelu" or a function.

    >>> nn.TransformerEncoderLayer(8, 2, 16)(Tensor.ones(5, 1, 8)).shape
    (5, 1, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        place: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, batch_first=batch_first, **place
        )
        self.linear1 = Linear(d_model, dim_feedforward, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **place)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **place)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **place)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = activation_of("TransformerEncoderLayer", activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            found: Tensor = self.self_attn(
                x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal
            )[0]
            return found

        x = self._added(src, self.norm1, self.dropout1, attend)
        return self._added(x, self.norm2, self.dropout2, self._network)


class TransformerDecoderLayer(_Layer):
    """`TransformerEncoderLayer` with attention to what an encoder gave between its two parts.

    tgt: the sequence. memory: what the encoder gave. The masks are those of `MultiheadAttention`.

    >>> nn.TransformerDecoderLayer(8, 2, 16)(Tensor.ones(5, 1, 8), Tensor.ones(6, 1, 8)).shape
    (5, 1, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        place: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, batch_first=batch_first, **place
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, batch_first=batch_first, **place
        )
        self.linear1 = Linear(d_model, dim_feedforward, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **place)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **place)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **place)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, **place)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = activation_of("TransformerDecoderLayer", activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            found: Tensor = self.self_attn(
                x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal
            )[0]
            return found

        def look(x: Tensor) -> Tensor:
            found: Tensor = self.multihead_attn(
                x,
                memory,
                memory,
                memory_key_padding_mask,
                False,
                memory_mask,
                is_causal=memory_is_causal,
            )[0]
            return found

        x = self._added(tgt, self.norm1, self.dropout1, attend)
        x = self._added(x, self.norm2, self.dropout2, look)
        return self._added(x, self.norm3, self.dropout3, self._network)


# ---- stacks --------------------------------------------------------------------------------------
class _Stack(Module):
    """`num_layers` copies of a layer, and perhaps a norm at the end."""

    def _hold(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        begin.check_sizes(self, num_layers=num_layers)
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def _through(self, x: Tensor, *args: Any, **named: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *args, **named)
        result: Tensor = x if self.norm is None else self.norm(x)
        return result


class TransformerEncoder(_Stack):
    """Copies of an encoder layer, one after the other, and perhaps a norm at the end. They begin
    with equal weights. mask, src_key_padding_mask: see `MultiheadAttention`.

    >>> nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)(Tensor.ones(5, 1, 8)).shape
    (5, 1, 8)
    """

    @elsewhere.as_pytorch
    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self._hold(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        return self._through(src, mask, src_key_padding_mask, is_causal=bool(is_causal))


class TransformerDecoder(_Stack):
    """Copies of a decoder layer, one after the other, and perhaps a norm at the end. They begin
    with equal weights. The arguments are those of `TransformerDecoderLayer`.

    >>> layers = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2)
    >>> layers(Tensor.ones(5, 1, 8), Tensor.ones(6, 1, 8)).shape
    (5, 1, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self._hold(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        return self._through(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal=bool(tgt_is_causal),
            memory_is_causal=memory_is_causal,
        )


class Transformer(Module):
    """An encoder of `src` and a decoder of `tgt` that looks at what the encoder gives.

    src: (source length, batch, d_model), tgt: (target length, batch, d_model), or with batch_first
    the batch first, or without a batch. custom_encoder, custom_decoder: in place of the stacks of
    layers. The other arguments are those of the layers. Weights begin as `xavier_uniform_`.
    Source: PyTorch; Vaswani et al., "Attention is all you need", 2017.

    >>> model = nn.Transformer(8, 2, 1, 1, 16)
    >>> mask = nn.Transformer.generate_square_subsequent_mask(4)
    >>> model(Tensor.ones(6, 3, 8), Tensor.ones(4, 3, 8), tgt_mask=mask).shape
    (4, 3, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        place: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        order = (batch_first, norm_first)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(*settings, *order, **place)
            norm = LayerNorm(d_model, layer_norm_eps, **place)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*settings, *order, **place)
            norm = LayerNorm(d_model, layer_norm_eps, **place)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ValueError(
                f"Transformer: src of shape {src.shape} and tgt of shape {tgt.shape} must have "
                f"d_model={self.d_model} features"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask, is_causal=src_is_causal)
        result: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return result

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: str | None = None, dtype: Dtype = None
    ) -> Tensor:
        """A mask (sz, sz) by which each place sees itself and those before: 0 there, else -inf."""
        kind = begin.kind_of(dtype)
        return Tensor.full((sz, sz), -math.inf, dtype=kind, device=device).triu(1)
