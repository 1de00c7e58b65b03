"""Recurrent layers: one loop in the program per layer and direction, whatever the length.

Names, order of gates and initial weights are those of PyTorch, uniform in -b .. b for
b = 1/sqrt(hidden_size).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from treadle.nn import begin
from treadle.nn.begin import Dtype
from treadle.nn.module import Module
from treadle.tensor import Tensor
from treadle.transforms import scan

# (new state, from what the step's input gives, the state, and the weights of the state)
State = tuple[Tensor, ...]  # h; or h and c
Step = Callable[[Tensor, State, Tensor, Tensor | None], State]


# ---- steps ---------------------------------------------------------------------------------------
def _plain(activation: Callable[[Tensor], Tensor]) -> Step:
    """The step of an RNN: activation(W_ih x + W_hh h)."""

    def step(given: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
        return (activation(given + state[0].linear(weight, bias)),)

    return step


def _gru(given: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """Gates: reset, update, new."""
    (h,) = state
    reset, update, new = given.chunk(3, -1)
    own_reset, own_update, own_new = h.linear(weight, bias).chunk(3, -1)
    kept = (update + own_update).sigmoid()
    fresh = (new + (reset + own_reset).sigmoid() * own_new).tanh()
    return (fresh + kept * (h - fresh),)


def _lstm(given: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """Gates: input, forget, cell, output."""
    h, c = state
    enter, keep, cell, leave = (given + h.linear(weight, bias)).chunk(4, -1)
    c = keep.sigmoid() * c + enter.sigmoid() * cell.tanh()
    return leave.sigmoid() * c.tanh(), c


ACTIVATIONS: dict[str, Step] = {"tanh": _plain(Tensor.tanh), "relu": _plain(Tensor.relu)}


# ---- layers --------------------------------------------------------------------------------------
class _Recurrent(Module):
    """What recurrent layers have in common; `RNN` says what the arguments mean."""

    gates: ClassVar[int]
    states: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        begin.check_sizes(
            self, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers
        )
        if not 0 <= dropout <= 1 or not num_layers or not 0 <= proj_size < max(hidden_size, 1):
            raise ValueError(
                f"{type(self).__name__}: dropout={dropout} must be in 0..1, num_layers={num_layers}"
                f" 1 or more, proj_size={proj_size} less than hidden_size={hidden_size}"
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self.output_size = proj_size or hidden_size
        bound = begin.fan_bound(hidden_size)
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            inputs = self.output_size * len(self._directions()) if layer else input_size
            for end in self._directions():
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, inputs),
                    "weight_hh": (rows, self.output_size),
                }
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes |= {"weight_hr": (proj_size, hidden_size)}
                for name, shape in shapes.items():
                    setattr(self, f"{name}_l{layer}{end}", begin.drawn(bound, shape, dtype, device))

    def _directions(self) -> tuple[str, ...]:
        """The ends of the names of weights, one for each direction."""
        return ("", "_reverse") if self.bidirectional else ("",)

    def _step(self) -> Step:
        raise NotImplementedError

    def forward(self, x: Tensor, hx: Any = None) -> tuple[Tensor, Any]:
        name = type(self).__name__
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise ValueError(
                f"{name}: x of shape {x.shape} must be (length, batch, {self.input_size}), "
                f"(batch, length, ..) with batch_first, or (length, {self.input_size})"
            )
        if not x.dtype.is_float:
            raise TypeError(f"{name}: x is of floats, not of {x.dtype}: cast it, as in x.float()")
        alone, swaps = x.ndim == 2, self.batch_first and x.ndim == 3
        x = x.unsqueeze(1) if alone else x.transpose(0, 1) if swaps else x
        begins = self._begin(x, hx, alone)
        ends: list[State] = []
        count = len(self._directions())
        for layer in range(self.num_layers):
            results = []
            for number, end in enumerate(self._directions()):
                start = tuple([state[layer * count + number] for state in begins])
                last, result = self._loop(x, start, f"_l{layer}{end}", reverse=number == 1)
                ends.append(last)
                results.append(result)
            x = results[0] if count == 1 else Tensor.cat(results, dim=-1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = x.dropout(self.dropout)
        x = x.squeeze(1) if alone else x.transpose(0, 1) if swaps else x
        stacked = [Tensor.stack(parts) for parts in zip(*ends)]
        final = [state.squeeze(1) for state in stacked] if alone else stacked
        return x, final[0] if self.states == 1 else tuple(final)

    def _loop(self, x: Tensor, start: State, end: str, reverse: bool) -> tuple[State, Tensor]:
        """(the last state, h of every step) of one layer in one direction."""
        step = self._step()
        weight, bias = getattr(self, f"weight_hh{end}"), getattr(self, f"bias_hh{end}", None)
        shrink = getattr(self, f"weight_hr{end}", None)
        given = x.linear(getattr(self, f"weight_ih{end}"), getattr(self, f"bias_ih{end}", None))

        def body(state: State, now: Tensor) -> tuple[State, Tensor]:
            h, *others = step(now, state, weight, bias)
            h = h if shrink is None else h.linear(shrink)
            h = h.cast(state[0].dtype)  # inside `autocast` a product may be narrower
            return (h, *others), h

        last, every = scan(body, start, given, reverse=reverse)
        return last, every

    def _begin(self, x: Tensor, hx: Any, alone: bool) -> list[Tensor]:
        """The states to begin with, each (layers * directions, batch, size)."""
        layers = self.num_layers * len(self._directions())
        sizes = (self.output_size, self.hidden_size)[: self.states]
        wanted = [(layers, x.shape[1], size) for size in sizes]
        if hx is None:
            return [Tensor.zeros(*s, dtype=x.dtype).to(device=x.device) for s in wanted]
        given = list(hx) if isinstance(hx, (tuple, list)) else [hx]
        if len(given) != self.states:
            raise ValueError(
                f"{type(self).__name__}: the state must be {self.states} tensor(s), not "
                f"{len(given)}"
            )
        given = [state.unsqueeze(1) for state in given] if alone else given
        for state, shape in zip(given, wanted):
            if state.shape != shape:
                raise ValueError(
                    f"{type(self).__name__}: the state has shape {state.shape}; it must be "
                    f"(layers * directions, batch, size) = {shape}"
                )
        return given

    def extra_repr(self) -> str:
        more = {"num_layers": 1, "batch_first": False, "dropout": 0.0, "bidirectional": False,
                "proj_size": 0}  # fmt: skip
        changed = [
            f"{n}={getattr(self, n)}" for n, usual in more.items() if getattr(self, n) != usual
        ]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *changed])


class RNN(_Recurrent):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh), step by step. nonlinearity: "tanh" or "relu".

    Called with x (length, batch, input_size), the batch in front with batch_first, or none, and
    perhaps the state to begin with. Gives the states of the last layer at every step, and the state
    at the end: (layers * directions, batch, hidden_size).

    Layer k > 0 reads what layer k - 1 gives; dropout: of that, in training. bidirectional: a second
    loop runs from the end to the beginning, and results are (.., 2 * hidden_size).

    >>> outputs, last = nn.RNN(3, 4)(Tensor.ones(5, 2, 3))
    >>> outputs.shape, last.shape
    ((5, 2, 4), (1, 2, 4))
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        if nonlinearity not in ACTIVATIONS:
            raise ValueError(f"RNN: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        self.nonlinearity = nonlinearity
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )

    def _step(self) -> Step:
        return ACTIVATIONS[self.nonlinearity]


class GRU(_Recurrent):
    """Gated recurrent units. How it is called, and what the arguments mean: see `RNN`.

    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014.

    >>> outputs, last = nn.GRU(3, 4)(Tensor.ones(5, 2, 3))
    >>> outputs.shape, last.shape
    ((5, 2, 4), (1, 2, 4))
    """

    gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )

    def _step(self) -> Step:
        return _gru


class LSTM(_Recurrent):
    """Long short-term memory. How it is called, and what the arguments mean: see `RNN`; but the
    state is a pair, h and the cells c, (.., hidden_size). proj_size: h is a learnt projection of
    that size. Source: Hochreiter and Schmidhuber, "Long short-term memory", 1997.

    >>> outputs, (h, c) = nn.LSTM(3, 4)(Tensor.ones(5, 2, 3))
    >>> outputs.shape, h.shape, c.shape
    ((5, 2, 4), (1, 2, 4), (1, 2, 4))
    """

    gates = 4
    states = 2

    def _step(self) -> Step:
        return _lstm


# ---- cells ---------------------------------------------------------------------------------------
class _Cell(Module):
    """What cells have in common; `RNNCell` says how they are called."""

    gates: ClassVar[int]
    states: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        begin.check_sizes(self, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size = input_size, hidden_size
        bound, rows = begin.fan_bound(hidden_size), self.gates * hidden_size
        self.weight_ih = begin.drawn(bound, (rows, input_size), dtype, device)
        self.weight_hh = begin.drawn(bound, (rows, hidden_size), dtype, device)
        self.bias_ih = begin.drawn(bound, (rows,), dtype, device) if bias else None
        self.bias_hh = begin.drawn(bound, (rows,), dtype, device) if bias else None

    def _step(self) -> Step:
        raise NotImplementedError

    def forward(self, x: Tensor, hx: Any = None) -> Any:
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__}: x of shape {x.shape} must be "
                f"(batch, {self.input_size}) or ({self.input_size},)"
            )
        shape = (*x.shape[:-1], self.hidden_size)
        if hx is None:
            hx = (Tensor.zeros(*shape, dtype=x.dtype).to(device=x.device),) * self.states
        state = tuple(hx) if isinstance(hx, (tuple, list)) else (hx,)
        if len(state) != self.states or any(each.shape != shape for each in state):
            raise ValueError(
                f"{type(self).__name__}: the state must be {self.states} tensor(s) of shape {shape}"
            )
        given = x.linear(self.weight_ih, self.bias_ih)
        new = self._step()(given, state, self.weight_hh, self.bias_hh)
        return new[0] if self.states == 1 else new

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class RNNCell(_Cell):
    """tanh(W_ih x + b_ih + W_hh h + b_hh). nonlinearity: "tanh" or "relu".

    One step of a recurrent layer: x (batch, input_size) or (input_size,), and perhaps a state
    (batch, hidden_size) to the next state.

    >>> nn.RNNCell(3, 4)(Tensor.ones(2, 3)).shape
    (2, 4)
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: str | None = None,
        dtype: Dtype = None,
    ) -> None:
        if nonlinearity not in ACTIVATIONS:
            raise ValueError(f"RNNCell: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, bias, device, dtype)

    def _step(self) -> Step:
        return ACTIVATIONS[self.nonlinearity]


class GRUCell(_Cell):
    """A gated recurrent unit; see `RNNCell` and `GRU`.

    >>> nn.GRUCell(3, 4)(Tensor.ones(2, 3)).shape
    (2, 4)
    """

    gates = 3

    def _step(self) -> Step:
        return _gru


class LSTMCell(_Cell):
    """Long short-term memory; see `RNNCell` and `LSTM`. The state is a pair, h and the cells c.

    >>> h, c = nn.LSTMCell(3, 4)(Tensor.ones(2, 3))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    gates = 4
    states = 2

    def _step(self) -> Step:
        return _lstm
