"""Ways of training a task: what a user's own loop might contain, one recipe each."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

from examples.models import Task, build

MakeOptimizer = Callable[[Iterable[Parameter]], torch.optim.Optimizer]

OVERFLOWING_STEP = 1

SGD = partial(torch.optim.SGD, lr=0.01, momentum=0.9)
ADAMW = partial(torch.optim.AdamW, lr=1e-3)


@dataclass(frozen=True)
class Recipe:
    """What one training loop does beside forward, backward and step."""

    optimizer: MakeOptimizer = SGD
    accumulate: int = 1
    clip: float | None = None
    autocast: torch.dtype | None = None
    scale_gradients: bool = False
    checkpoint: bool = False
    schedule: bool = False
    average: bool = False
    resume_before_step: int | None = None


RECIPES = {
    "sgd": Recipe(),
    "adamw": Recipe(optimizer=partial(ADAMW, foreach=True)),
    "adamw_fused": Recipe(optimizer=partial(ADAMW, fused=True)),
    "accumulation": Recipe(accumulate=2),
    "clipping": Recipe(clip=0.1),
    "autocast": Recipe(autocast=torch.bfloat16),
    "grad_scaler": Recipe(scale_gradients=True),
    "checkpoint": Recipe(checkpoint=True),
    "schedule": Recipe(schedule=True),
    "average": Recipe(average=True),
    "resume": Recipe(optimizer=partial(ADAMW, foreach=True), resume_before_step=3),
}


class Training:
    """One training under way: the task, its optimizer and whatever the recipe adds.

    Example:
        >>> training = Training("gpt", RECIPES["sgd"], "cpu", "cpu")
        >>> first_loss = training.step(0)
    """

    def __init__(self, name: str, recipe: Recipe, device: str, scale: str) -> None:
        self.name, self.recipe, self.device, self.scale = name, recipe, device, scale
        self._make()

    def _make(self) -> None:
        recipe = self.recipe
        self.task = build(self.name, self.device, seed=1, scale=self.scale)
        self.optimizer = recipe.optimizer(self.task.parameters())
        self.average = self.schedule = self.scaler = None
        if recipe.average:
            self.average = AveragedModel(self.task, multi_avg_fn=get_ema_multi_avg_fn(0.9))
        if recipe.schedule:
            self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.05, 20)
        if recipe.scale_gradients:
            self.scaler = torch.amp.GradScaler(self.device, init_scale=2.0**40)
        if recipe.checkpoint:
            self._checkpoint_blocks(self.task)

    @staticmethod
    def _checkpoint_blocks(task: Task) -> None:
        for block in task.blocks():
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)

    def step(self, step: int) -> float:
        """Trains one step and returns its loss."""
        if step == self.recipe.resume_before_step:
            self._save_and_resume()
        self.optimizer.zero_grad()
        loss = sum(self._backward(step, part) for part in range(self.recipe.accumulate))
        self._update()
        return loss

    def _backward(self, step: int, part: int) -> float:
        recipe = self.recipe
        enabled = recipe.autocast is not None
        with torch.autocast(self.device, dtype=recipe.autocast, enabled=enabled):
            loss = self.task.loss(step * recipe.accumulate + part) / recipe.accumulate
        self._scaled(loss, step).backward()
        return loss.item()

    def _scaled(self, loss: Tensor, step: int) -> Tensor:
        if self.scaler is None:
            return loss
        # One step's gradients overflow, so that it is skipped and the scale comes down.
        return self.scaler.scale(loss * 1e38 if step == OVERFLOWING_STEP else loss)

    def _update(self) -> None:
        if self.scaler:
            self.scaler.unscale_(self.optimizer)
        if self.recipe.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.task.parameters(), self.recipe.clip)
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        if self.schedule:
            self.schedule.step()
        if self.average:
            self.average.update_parameters(self.task)

    def _save_and_resume(self) -> None:
        """Goes on with new objects, as a restarted process would."""
        file = io.BytesIO()
        torch.save(
            {
                "task": self.task.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "random": torch.get_rng_state(),
            },
            file,
        )
        self._make()
        file.seek(0)
        saved = torch.load(file, weights_only=True)
        self.task.load_state_dict(saved["task"])
        self.optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"])
