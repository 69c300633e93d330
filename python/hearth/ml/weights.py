"""Weights of PyTorch modules as safetensors, which contain only numbers."""

from __future__ import annotations

from typing import Any

from hearth.errors import invalid


def packed(state: dict[str, Any]) -> bytes:
    """A state_dict() as the content of a .safetensors file.

    Raises:
        ImportError: the package safetensors is missing.
        ValueError: the state contains something other than tensors.
    """
    import torch

    for name, value in state.items():
        if not isinstance(value, torch.Tensor):
            raise invalid(
                f"{name!r} of the module's state is a {type(value).__name__}, but safetensors hold "
                "only tensors: leave it out of state_dict(), or save the module yourself"
            )
    # Copies each tensor, because safetensors do not support tensors that share memory.
    whole = {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}
    return bytes(_safetensors().save(whole))


def unpacked(data: bytes) -> dict[str, Any]:
    """The state_dict() of a .safetensors file. Raises ImportError like packed()."""
    return dict(_safetensors().load(data))


def _safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError:
        raise ImportError(
            "weights are saved as safetensors, but that package is missing: "
            "pip install 'hearth-spark[torch]'"
        ) from None
    return safetensors.torch
