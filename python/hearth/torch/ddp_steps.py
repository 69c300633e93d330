"""Counts the training steps of DistributedDataParallel models, for the ranks to compare.

A rank that leaves out the backward of one step, where its loss is not finite, for instance, would
otherwise add its gradients of the next step to the others' of this one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.nn.modules.module import register_module_module_registration_hook
from torch.nn.parallel import DistributedDataParallel

_steps = 0
_counts = True


@cache
def watch() -> None:
    """Counts the forward passes of the models that are wrapped from now on."""
    register_module_module_registration_hook(_on_registration)


def of_this_call() -> int:
    """The step to which an all-reduce that is called now belongs; 0 outside of a backward."""
    in_backward = torch._C._current_graph_task_id() != -1
    return _steps if in_backward and _counts else 0


def _on_registration(module: Any, _: str, __: Any) -> None:
    if isinstance(module, DistributedDataParallel) and _on_forward not in (
        module._forward_pre_hooks.values()
    ):
        module.register_forward_pre_hook(_on_forward)


def _on_forward(model: Any, _: Any) -> None:
    global _steps, _counts
    if model._comm_hooks:
        # Its second call of a bucket (PowerSGD's) runs in the backward or after it, by chance.
        _counts = False
    # A rank that has joined (torch.distributed.algorithms.Join) runs no forward.
    joins = model._join_config.enable
    if model.training and torch.is_grad_enabled() and model.require_backward_grad_sync:
        _steps += not joins
