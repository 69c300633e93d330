"""Runs a PyTorch main function on a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hearth.ranks.group import note_loss
from hearth.torch import process_group
from hearth.torch.context import TorchContext


def context_of_node(**values: Any) -> TorchContext:
    """The context of a running node, which is then ready for init_process_group().

    `values`: the fields of a NodeContext. Raises ImportError if PyTorch is missing.
    """
    context = TorchContext(**values)
    process_group.prepare(context)
    return context


def run_main(main_fun: Callable[[Any, Any], Any], args: Any, ctx: TorchContext) -> Any:
    """Runs the user's main function and returns its value. An error that a lost rank may have
    caused is delayed until the lost rank's own error is known, so that the driver reports the
    cause."""
    try:
        result = main_fun(args, ctx)
        ctx.end()
        return result
    except Exception as error:
        if process_group.is_group_error(error):
            note_loss()
        if process_group.may_follow(error):
            ctx.mgr.await_cause(process_group.CAUSE_WAIT_S)
        raise
