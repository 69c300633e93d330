"""What rank 0 gives back to the driver: tensors, numbers, texts, and collections of them."""

from __future__ import annotations

import base64
import io
import pickle
from typing import Any

# The rendezvous carries at most a megabyte at once.
_PIECE = 600_000


def give(ctx: Any, value: Any) -> None:
    """Sends a rank's value to the driver. Raises TypeError where the driver could not take it."""
    text = _packed(value)
    for start in range(0, len(text), _PIECE):
        ctx.mgr.report_value(text[start : start + _PIECE])


def take(cluster: Any) -> Any:
    """What rank 0 gave, in the driver, when the cluster has ended; None where it gave nothing."""
    pieces = cluster.running.watch.values(0)
    return loaded(base64.b64decode("".join(pieces))) if pieces else None


def dumped(value: Any) -> bytes:
    """A value as bytes, which loaded() reads."""
    import torch

    data = io.BytesIO()
    torch.save(value, data)
    return data.getvalue()


def loaded(data: bytes) -> Any:
    """The value, without running code of whoever sent it."""
    import torch

    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)


def _packed(value: Any) -> str:
    try:
        data = dumped(value)
        loaded(data)
    except (pickle.PickleError, AttributeError, TypeError):
        # Without its cause: PyTorch's own text advises weights_only=False.
        raise TypeError(
            f"the function returned a {type(value).__name__}, but the driver takes tensors, "
            "numbers, texts, and lists, tuples and dicts of them alone, as it runs no code that "
            "came over a network: return model.state_dict() instead of a model, "
            "torch.from_numpy(array) instead of an array"
        ) from None
    return base64.b64encode(data).decode()
