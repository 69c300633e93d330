"""The epochs of one rank of a PyTorch training. Independent of Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hearth.errors import invalid
from hearth.ml.early_stop import EarlyStop
from hearth.ml.torch_batches import Batch, BatchConverter, described, float_kind, outputs_of
from hearth.ml.torch_losses import BatchLoss, Losses, Metrics
from hearth.ml.training_spec import NOTHING_HELD, TrainingCode, TrainingSpec, not_finite

_TYPES = {"float32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Trainer:
    """A trainer of one rank, which trains a model on this rank's minibatches, in step with the
    other ranks of the default process group, or alone if there is no group. Passed to callbacks.
    Not thread-safe.

    Attributes:
        model, optimizer, scheduler: created by the user's code; the model is not wrapped in
            DistributedDataParallel.
        history: a dict of figures for each epoch so far.
        run: further state that checkpoints contain: epochs, steps, history, early stopping.
    """

    def __init__(
        self, code: TrainingCode, spec: TrainingSpec, device: torch.device, initial: Any = None
    ):
        """`initial`: initial weights. Raises ValueError for losses that do not fit."""
        self.code, self.spec, self.device = code, spec, device
        torch.manual_seed(spec.seed)
        self.model = code.model(**spec.model_args).to(device)
        if initial is not None:
            self.model.load_state_dict(initial)
        self.world = dist.get_world_size() if dist.is_initialized() else 1
        if self.world > 1:  # dropout must differ between ranks
            torch.manual_seed(spec.seed + dist.get_rank())
        self._parallel = DistributedDataParallel(self.model) if self.world > 1 else self.model
        arguments = {"lr": spec.learning_rate, **spec.optimizer_args}
        self.optimizer = code.optimizer(self.model.parameters(), **arguments)
        self.scheduler = None if code.scheduler is None else code.scheduler(self.optimizer)
        self.run: dict[str, Any] = {
            "epoch": 0, "step": 0, "history": [], "stopped": False, "output": None, "partial": None
        }  # fmt: skip
        self._type = _TYPES[spec.precision]
        scaled = self._type is torch.float16
        self.scaler = torch.amp.GradScaler(device.type, enabled=True) if scaled else None
        self._losses = Losses(code.loss, spec.labels, spec.loss_weights)
        kind = float_kind(self.model)
        self._convert = BatchConverter(spec.inputs, spec.labels, spec.weight, device, kind)
        self._stop = EarlyStop.of(spec)
        self.run["stop"] = self._stop.state
        self.best = self._state() if spec.keeps_best else None
        self._window = [0, 0.0]  # minibatches since the optimizer's last step, their total weight

    @property
    def epoch(self) -> int:
        """Number of completed epochs."""
        return self.run["epoch"]

    @property
    def history(self) -> list[dict[str, Any]]:
        """The metrics of each completed epoch."""
        return self.run["history"]

    def stop(self) -> None:
        """Ends the training after this epoch, on all ranks."""
        self.run["stopped"] = True

    def parts(self) -> dict[str, Any]:
        """The content of a checkpoint, for checkpoint() and restore() of a TorchContext."""
        return {
            "model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler,
            "scaler": self.scaler, "best": self.best, "run": self.run,
        }  # fmt: skip

    def fit(
        self,
        train: Any,
        validation: Iterable[Any] | None = None,
        after_epoch: Callable[[dict[str, Any]], None] = lambda row: None,
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        """Trains until the configured number of epochs is reached.

        Args:
            train: each iteration over it yields the minibatches of one epoch.
            validation: each iteration over it yields the minibatches to validate on.
            after_epoch: called with the figures of each epoch.
            keep: saves a checkpoint in the middle of an epoch.

        Raises:
            ValueError: columns, model, loss or metrics are invalid, or the loss is not finite.
        """
        self._stop.state = self.run["stop"]  # `run` may come from a checkpoint
        self._call("on_train_begin")
        while self.epoch < self.spec.epochs and not self.run["stopped"]:
            self._call("on_epoch_begin")
            began = time.monotonic()
            row = self._train_epoch(train, keep)
            if not row["rows"]:
                break
            if validation is not None:
                row |= {f"val_{name}": value for name, value in self._validate(validation).items()}
            row |= {"lr": self.optimizer.param_groups[0]["lr"]}
            row = {"epoch": self.epoch, **row, "seconds": time.monotonic() - began}
            self._end_epoch(row)
            after_epoch(row)
        if self.best is not None and self.run["stop"]["best_epoch"] >= 0:
            self.model.load_state_dict(self.best)
        self._call("on_train_end")

    def _train_epoch(self, batches: Iterable[Any], keep: Callable[[], None]) -> dict[str, Any]:
        self._parallel.train()
        sums, metrics = _Sums(), Metrics(self.code.metrics, self.device)
        self._take_partial(sums, metrics)
        for batch in batches:
            before = self.run["step"]
            on_device = self._convert(batch)
            outputs, result = self._forward(on_device, self._parallel)
            self._check_finite(result)
            sums.add(result, on_device.rows)
            metrics.update(outputs, on_device)
            self._backward(result)
            self._call("on_batch_end")
            every = self.spec.checkpoint_steps
            if every and self.run["step"] > before and self.run["step"] % every == 0:
                self._note_partial(sums, metrics)
                keep()
        if self._window[0]:
            self._share_gradients()
            self._step()
        self.run["partial"] = None
        return self._figures(sums, metrics)

    def _note_partial(self, sums: _Sums, metrics: Metrics) -> None:
        """Stores the sums of the current epoch so far, over all ranks, for a checkpoint."""
        values = {**sums.losses, **{f"metric {name}": v for name, v in metrics.sums.items()}}
        values |= {"mass": sums.mass, "rows": float(sums.rows)}
        self.run["partial"] = dict(zip(values, self._total(list(values.values())), strict=True))

    def _take_partial(self, sums: _Sums, metrics: Metrics) -> None:
        """On rank 0, continues with the sums of a checkpoint, which are those of all ranks."""
        if (known := self.run["partial"]) is None or (self.world > 1 and dist.get_rank()):
            return
        known = dict(known)
        sums.mass, sums.rows = known.pop("mass"), int(known.pop("rows"))
        metrics.rows = sums.rows
        for name, value in known.items():
            of_metric = name.startswith("metric ")
            where = metrics.sums if of_metric else sums.losses
            where[name.removeprefix("metric ")] = value

    def _forward(self, batch: Batch, model: Any) -> tuple[list[torch.Tensor], BatchLoss]:
        amp = torch.autocast(self.device.type, self._type) if self._type else nullcontext()
        is_last = self._window[0] + 1 == self.spec.accumulation
        waits = hasattr(model, "no_sync") and not is_last and model.training
        with model.no_sync() if waits else nullcontext(), amp:
            try:
                found = model(*batch.inputs)
            except (RuntimeError, TypeError) as error:
                raise invalid(
                    f"the model does not accept {described(self.spec.inputs, batch.inputs)}: "
                    f"{str(error).strip().splitlines()[0]}"
                ) from error
            outputs = outputs_of(found, len(batch.inputs[0]))
            self.run["output"] = [
                [str(output.dtype).removeprefix("torch."), output.dim() - 1] for output in outputs
            ]
            return outputs, self._losses(outputs, batch)

    def _check_finite(self, result: BatchLoss) -> None:
        if not result.loss.isfinite():
            raise not_finite(result.loss.item(), self.run["step"])

    def _backward(self, result: BatchLoss) -> None:
        """Adds up gradients as sums over rows; _step() divides them by the window's total weight on
        all ranks."""
        window, spec = self._window, self.spec
        window[0] += 1
        window[1] += result.mass
        is_last = window[0] == spec.accumulation
        loss = result.loss * (result.mass / (spec.batch_size * spec.accumulation))
        waits = not is_last and self.world > 1
        with self._parallel.no_sync() if waits else nullcontext():
            (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        if is_last:
            self._step()

    def _share_gradients(self) -> None:
        """Averages gradients over the ranks when a window ends before its last minibatch."""
        for parameter in self.model.parameters() if self.world > 1 else ():
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                dist.all_reduce(parameter.grad)
                parameter.grad /= self.world

    def _step(self) -> None:
        spec, parameters = self.spec, [p for p in self.model.parameters() if p.grad is not None]
        [mass] = self._total([self._window[1]])
        self._window = [0, 0.0]
        self.run["step"] += 1
        if mass > 0:
            if self.scaler is not None:
                self.scaler.unscale_(self.optimizer)
            share = spec.batch_size * spec.accumulation * self.world / mass
            if abs(share - 1) > 1e-12:
                torch._foreach_mul_([p.grad for p in parameters], share)
            if spec.clip_norm:
                torch.nn.utils.clip_grad_norm_(parameters, spec.clip_norm)
            if spec.clip_value:
                torch.nn.utils.clip_grad_value_(parameters, spec.clip_value)
            if self.scaler is None:
                self.optimizer.step()
            else:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            if self.scheduler is not None and spec.scheduler_interval == "step":
                self.scheduler.step()
        self.optimizer.zero_grad()

    def _validate(self, batches: Iterable[Any]) -> dict[str, float]:
        if self.world > 1:  # the buffers of BatchNorm differ between ranks
            for buffer in self.model.buffers():
                dist.broadcast(buffer, 0)
        self.model.eval()
        sums, metrics = _Sums(), Metrics(self.code.metrics, self.device)
        with torch.no_grad():
            for batch in batches:
                on_device = self._convert(batch)
                outputs, result = self._forward(on_device, self.model)
                sums.add(result, on_device.rows)
                metrics.update(outputs, on_device)
        found = self._figures(sums, metrics, "validation rows")
        if not found.pop("rows"):
            raise invalid(NOTHING_HELD)
        return found

    def _figures(self, sums: _Sums, metrics: Metrics, what: str = "rows") -> dict[str, Any]:
        """Loss, metrics and rows of all ranks."""
        own = metrics.values()
        names = [*sums.losses, *own]
        weighted = [*sums.losses.values(), *(value * sums.rows for value in own.values())]
        *totals, mass, rows = self._total([*weighted, sums.mass, float(sums.rows)])
        if rows and not mass:
            raise invalid(
                f"the column {self.spec.weight!r} has the weight 0 for each of {int(rows)} {what}, "
                "so they are ignored: set the weight of some rows above 0"
            )
        masses = [mass] * len(sums.losses) + [rows] * len(own)
        means = [t / m if m else float("nan") for t, m in zip(totals, masses, strict=True)]
        return {**dict(zip(names, means, strict=True)), "rows": int(rows)}

    def _end_epoch(self, row: dict[str, Any]) -> None:
        if self.scheduler is not None and self.spec.scheduler_interval == "epoch":
            on_plateau = isinstance(self.scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
            self.scheduler.step(*([row[self._stop.monitor]] if on_plateau else []))
        self.run["history"] = [*self.history, row]
        if self.spec.patience and self._stop.observe(row, self.epoch) and self.best is not None:
            self.best.update(self._state())
        self.run["epoch"] += 1
        self._call("on_epoch_end", row)
        [stops] = self._total([float(self.run["stopped"] or self._stop.is_over)])
        self.run["stopped"] = stops > 0

    def _total(self, values: list[float]) -> list[float]:
        """The sum of each value over the ranks, bitwise equal on all ranks."""
        if self.world == 1:
            return values
        on_gpu = dist.get_backend() == "nccl"
        total = torch.tensor(values, dtype=torch.float64, device="cuda" if on_gpu else "cpu")
        dist.all_reduce(total)
        return total.tolist()

    def _state(self) -> dict[str, torch.Tensor]:
        return {name: value.cpu().clone() for name, value in self.model.state_dict().items()}

    def _call(self, event: str, row: Mapping[str, Any] | None = None) -> None:
        arguments = (self,) if row is None else (self, row)
        for callback in self.code.callbacks:
            method = getattr(callback, event, None)
            if method is None and event == "on_epoch_end" and callable(callback):
                method = callback
            if method is not None:
                method(*arguments)


class _Sums:
    """Sums of the losses of a pass over minibatches, each multiplied by the total weight of its
    rows."""

    def __init__(self) -> None:
        self.losses: dict[str, float] = {"loss": 0.0}
        self.mass, self.rows = 0.0, 0

    def add(self, result: BatchLoss, rows: int) -> None:
        values = {"loss": result.loss, **{f"{name}_loss": v for name, v in result.parts.items()}}
        for name, value in values.items():
            sum_over_rows = value.item() * result.mass if result.mass else 0.0
            self.losses[name] = self.losses.get(name, 0.0) + sum_over_rows
        self.mass += result.mass
        self.rows += rows
