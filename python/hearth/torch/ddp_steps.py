"""Counts training steps of DistributedDataParallel models, so that the ranks can compare them.

Without this, a rank that skips the backward pass of one step, e.g. because its loss is not finite,
would add its gradients of the next step to the other ranks' gradients of this step.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.nn.modules.module import register_module_module_registration_hook
from torch.nn.parallel import DistributedDataParallel


class Steps:
    """The steps of the models in one process group, compared between its ranks."""

    def __init__(self) -> None:
        self._count = 0
        self._counts = True
        self._joins = False

    def of_this_call(self) -> int:
        """The step of an all-reduce that is called now; 0 if unknown, e.g. outside of a backward
        pass."""
        in_backward = torch._C._current_graph_task_id() != -1
        return self._count if in_backward and self._counts and not self._joins else 0

    def note_forward(self, model: Any) -> None:
        """Counts a forward pass if its backward pass will reduce gradients."""
        if model._comm_hooks:
            # Steps cannot be compared, because a hook such as PowerSGD reduces a bucket again,
            # during or after the backward pass, depending on timing.
            self._counts = False
        # A rank that has joined (torch.distributed.algorithms.Join) runs no forward pass, and calls
        # all-reduces outside of a backward pass.
        self._joins = model._join_config.enable
        if model.training and torch.is_grad_enabled() and model.require_backward_grad_sync:
            self._count += not self._joins


_of_groups: dict[str, Steps] = {}


@cache
def _watch() -> None:
    """Counts the forward passes of models that are wrapped from now on."""
    register_module_module_registration_hook(_on_registration)


def begin(group: str) -> Steps:
    """The steps of a new group, which may have the name of an old group."""
    _watch()
    steps = _of_groups[group] = Steps()
    return steps


def _on_registration(module: Any, _: str, __: Any) -> None:
    if isinstance(module, DistributedDataParallel) and _on_forward not in (
        module._forward_pre_hooks.values()
    ):
        module.register_forward_pre_hook(_on_forward)


def _on_forward(model: Any, _: Any) -> None:
    steps = _of_groups.get(model.process_group.group_name)
    if steps is not None:  # None if the group has another backend
        steps.note_forward(model)
