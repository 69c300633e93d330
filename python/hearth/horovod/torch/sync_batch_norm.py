"""Batch normalization over the minibatches of all ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hearth.errors import invalid
from hearth.horovod import basics, reductions
from hearth.horovod.torch.operations import allreduce

_BatchNorm: Any = torch.nn.modules.batchnorm._BatchNorm


class SyncBatchNorm(_BatchNorm):
    """A module like torch.nn.BatchNorm*d, but with the mean and variance of all ranks' rows during
    training."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise invalid(f"SyncBatchNorm needs at least 2 dimensions, not {input.dim()}")

    def forward(self, input: Tensor) -> Tensor:
        """Normalizes a minibatch, (rows, channels, ...)."""
        self._check_input_dim(input)
        if (not self.training and self.track_running_stats) or basics.size() == 1:
            return super().forward(input)
        axes = [axis for axis in range(input.dim()) if axis != 1]
        shape = [1, -1, *[1] * (input.dim() - 2)]
        rows = input.float()
        own = torch.full((1,), rows.numel() / rows.size(1))
        sums = _summed(torch.cat([rows.sum(axes), own.to(rows.device)]))
        count, mean = sums[-1].detach(), sums[:-1] / sums[-1].detach()
        centered = rows - mean.view(shape)
        variance = _summed(centered.square().sum(axes)) / count
        if self.training and self.track_running_stats:
            self._track(mean.detach(), variance.detach() * count / (count - 1).clamp(min=1))
        found = centered * torch.rsqrt(variance + self.eps).view(shape)
        if self.affine:
            found = found * self.weight.view(shape) + self.bias.view(shape)
        return found.to(input.dtype)

    def _track(self, mean: Tensor, variance: Tensor) -> None:
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1.0 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


def _summed(tensor: Tensor) -> Tensor:
    return allreduce(tensor, op=reductions.Sum)
