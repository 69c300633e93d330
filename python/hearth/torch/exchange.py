"""Converts tensors for the core: contiguous, on the CPU, of a type that it supports.

Tensors that are not reduced may have any type, because they are sent as bytes. Tensors to reduce
are converted to a type that the core can add; the functions here return that tensor, and a function
that converts it back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from hearth.errors import invalid
from hearth.native import _core
from hearth.torch import names

_KNOWN = {
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
}
# Types that the core lacks, and the wider types to use instead, which give bitwise equal sums.
_WIDER = {torch.int8: torch.int32, torch.int16: torch.int32}

# Reductions that the core lacks; they are computed from the gathered tensors.
FOLDED: dict[str, Callable[..., Tensor]] = {
    "PRODUCT": torch.mul,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}

Finish = Callable[[], Any]


def check(tensors: Sequence[Tensor]) -> None:
    """Raises ValueError for sparse tensors, and for tensors on devices other than the CPU."""
    for tensor in tensors:
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            raise invalid(
                f'the backend "hearth" exchanges dense tensors of the CPU, not {tensor.layout} '
                f"ones on {tensor.device}: for GPUs, init_process_group("
                '"cpu:hearth,cuda:nccl")'
            )


def signature_of(tensor: Tensor) -> str:
    """Type and shape, which the ranks compare: "int16[2, 3]"."""
    return f"{str(tensor.dtype)[6:]}{list(tensor.shape)}"


def nothing() -> None:
    """Does nothing: a tensor that is exchanged in place needs no conversion."""


def moved(tensor: Tensor) -> Tensor:
    """A contiguous tensor to send, sharing memory if possible."""
    tensor = tensor.detach().contiguous()
    return tensor if tensor.dtype in _KNOWN else tensor.reshape(-1).view(torch.uint8)


def received(tensor: Tensor) -> tuple[Tensor, Finish]:
    """A tensor to receive into, and a function to call when it is complete."""
    tensor = tensor.detach()
    if not tensor.is_contiguous():
        whole = torch.empty_like(tensor, memory_format=torch.contiguous_format)
        return moved(whole), lambda: tensor.copy_(whole)
    return moved(tensor), nothing


def spread(parts: Sequence[Tensor], whole: Tensor) -> None:
    """Copies slices of a tensor along the first dimension to the parts."""
    for part, source in zip(parts, whole, strict=True):
        part.detach().copy_(source)


def reducible(tensor: Tensor) -> tuple[Tensor, Finish]:
    """A tensor to reduce in place, and a function to call afterwards.

    Raises ValueError for a type that cannot be reduced.
    """
    tensor = tensor.detach()
    wider: torch.dtype | None = tensor.dtype
    if wider not in _KNOWN and not tensor.is_complex():
        wider = _WIDER.get(tensor.dtype)
    if wider is None:
        raise invalid(f'the backend "hearth" cannot reduce tensors of {tensor.dtype}')
    whole = tensor.to(wider).contiguous()
    end = nothing if whole is tensor else lambda: tensor.copy_(whole)
    return (torch.view_as_real(whole) if wider.is_complex else whole), end


def name_of(op: Any) -> str:
    """The name of a ReduceOp, which torch may pass wrapped in another object."""
    return _name_of_kind(getattr(op, "op", op))


@functools.cache
def _name_of_kind(kind: Any) -> str:
    return str(kind).rpartition(".")[2]


def request(operation: str, *arrays: Tensor | None, like: Tensor | None = None, **how: Any) -> Any:
    """The core's request for an operation. `like`: the program's tensor, whose signature the ranks
    compare; `how`: other attributes of the request."""
    made = _core.Request(operation, *arrays)
    made.name = names.take()
    if like is not None:
        made.signature = signature_of(like)
    for key, value in how.items():
        setattr(made, key, value)
    return made
