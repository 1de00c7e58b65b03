"""Mixed precision: `autocast`, and a scale for losses whose gradients float16 would lose.

scaler = nn.amp.GradScaler()
with nn.amp.autocast(dtype="float16"):
    loss = model(x).cross_entropy(y)
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from treadle.nn.begin import buffer
from treadle.nn.optimizer import Optimizer
from treadle.precision import autocast
from treadle.tensor import Tensor, no_grad

__all__ = ["GradScaler", "autocast"]


class GradScaler:
    """Scales a loss so that small gradients are not 0 in float16, and the gradients back before the
    optimizer's step; a step whose gradients are not finite is not made, and the scale falls.

    init_scale: the first scale. backoff_factor: what it is multiplied by after a step that was not
    made; growth_factor: after `growth_interval` steps in a row that were. enabled: False to scale
    nothing. Nothing is read from the device: whether a step is made is decided there, so all of it
    works inside `jit`. Source: PyTorch's `GradScaler`; Micikevicius et al., "Mixed precision
    training", 2018.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> optimizer, scaler = nn.optim.SGD([weight], lr=0.5), GradScaler(init_scale=4.0)
    >>> scaler.scale(weight.sum()).backward()
    >>> scaler.step(optimizer); scaler.update()
    >>> weight.tolist()
    [0.5]
    """

    def __init__(
        self,
        device: str | None = None,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if not growth_factor > 1 or not 0 < backoff_factor < 1:
            raise ValueError(
                f"GradScaler: growth_factor={growth_factor!r} must be above 1, and backoff_factor="
                f"{backoff_factor!r} in 0..1"
            )
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval, self.enabled = growth_interval, enabled
        self._scale = buffer(init_scale, (), "float32", device)
        self._growth_tracker = buffer(0, (), "int32", device)
        # of the optimizers since the last update: whether a gradient was not finite, steps made
        self._found: dict[int, Tensor] = {}
        self._stepped: set[int] = set()

    def named_members(self) -> Iterator[tuple[str, Any]]:
        """Nothing: the scale is no part of a model's state."""
        return iter(())

    def scale(self, outputs: Any) -> Any:
        """A loss times the scale; or each of a list, tuple or dict of them."""
        if not self.enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale.to(device=outputs.device, dtype=_wide(outputs))
        if isinstance(outputs, Mapping):
            return {key: self.scale(each) for key, each in outputs.items()}
        if isinstance(outputs, (list, tuple)):
            scaled = [self.scale(each) for each in outputs]
            return getattr(type(outputs), "_make", type(outputs))(scaled)
        raise TypeError(f"scale: a loss is a Tensor, not a {type(outputs).__name__}")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, to clip them for example.
        `step` does it if nobody has. RuntimeError if it was done since the last `update`."""
        if not self.enabled:
            return
        if id(optimizer) in self._found:
            raise RuntimeError("unscale_: it was already called for this optimizer since update()")
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_: step() was already called for this optimizer")
        gradients = [
            parameter.grad
            for group in optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        if not gradients:
            raise RuntimeError("unscale_: no parameter of this optimizer has a gradient")
        with no_grad():
            found = Tensor(False)
            for gradient in gradients:
                found = found | gradient.isfinite().all().logical_not().to(device=found.device)
            inverse = 1.0 / self._scale
            for gradient in gradients:
                wide = gradient * inverse.to(device=gradient.device, dtype=_wide(gradient))
                gradient.assign(wide.to(dtype=gradient.dtype))
        self._found[id(optimizer)] = found

    def step(self, optimizer: Optimizer) -> Any:
        """The optimizer's step, which changes nothing if a gradient is not finite."""
        if not self.enabled:
            return optimizer.step()
        if id(optimizer) in self._stepped:
            raise RuntimeError("step: it was already called for this optimizer since update()")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        result = optimizer.step(skip=self._found[id(optimizer)])
        self._stepped.add(id(optimizer))
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Change the scale by what the steps since the last call found, or set it."""
        if not self.enabled:
            return
        with no_grad():
            if new_scale is not None:
                self._scale.assign(Tensor(new_scale, dtype="float32"))
            else:
                self._follow(list(self._found.values()))
        self._found.clear()
        self._stepped.clear()

    def _follow(self, found: list[Tensor]) -> None:
        if not found:
            raise RuntimeError("update: no gradients were unscaled and no step made before it")
        bad = found[0]
        for other in found[1:]:
            bad = bad | other
        bad = bad.to(device=self._scale.device)
        good = self._growth_tracker + 1
        due = good.eq(self.growth_interval)
        larger = self._scale * self.growth_factor
        larger = larger.isfinite().where(larger, self._scale)
        kept = due.where(larger, self._scale)
        self._scale.assign(bad.where(self._scale * self.backoff_factor, kept))
        self._growth_tracker.assign((bad | due).where(0, good).to(dtype="int32"))

    # ---- settings and state ----------------------------------------------------------------------
    def get_scale(self) -> float:
        """The scale now, which is read from the device; 1 if not enabled."""
        return float(self._scale.item()) if self.enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self.enabled

    def state_dict(self) -> dict[str, Any]:
        """What has to be kept to go on later, as PyTorch has it; empty if not enabled."""
        if not self.enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
            "_growth_tracker": int(self._growth_tracker.item()),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave. RuntimeError for the state of one not enabled."""
        if not self.enabled:
            return
        if not state_dict:
            raise RuntimeError("GradScaler: the state is empty: it is of one that was not enabled")
        self.growth_factor = state_dict["growth_factor"]
        self.backoff_factor = state_dict["backoff_factor"]
        self.growth_interval = state_dict["growth_interval"]
        with no_grad():
            self._scale.assign(float(state_dict["scale"]))
            self._growth_tracker.assign(int(state_dict["_growth_tracker"]))


def _wide(tensor: Tensor) -> Any:
    """The dtype to scale in: a scale may not fit float16."""
    return tensor.dtype.accumulator
