"""What ranks give back to the driver: tensors, numbers, texts, and collections of them."""

from __future__ import annotations

import base64
import io
import pickle
from typing import Any

from hearth.cluster import results

# The rendezvous carries at most a megabyte at once.
_PIECE = 600_000
_TENSORS, _LENGTH_BYTES = b"T", 8


def give(ctx: Any, value: Any) -> None:
    """Sends a rank's value to the driver. Raises TypeError where the driver could not take it."""
    text = base64.b64encode(_packed(value)).decode()
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


def packed_result(value: Any) -> bytes:
    """What a main function returned: as JSON, with its tensors behind it, the length of the JSON
    before. Raises TypeError for what is not carried."""
    import torch

    tensors: list[Any] = []

    def keep(each: Any) -> int | None:
        if not isinstance(each, torch.Tensor):
            return None
        tensors.append(each.detach())
        return len(tensors) - 1

    head = results.packed(value, keep)
    if not tensors:
        return head
    return _TENSORS + len(head).to_bytes(_LENGTH_BYTES, "little") + head + _packed(tensors)


def result_of(data: bytes) -> Any:
    """The value of packed_result(), in the driver; tensors on the CPU."""
    if data[:1] != _TENSORS:
        return results.unpacked(data)
    start = 1 + _LENGTH_BYTES
    end = start + int.from_bytes(data[1:start], "little")
    return results.unpacked(data[start:end], loaded(data[end:]))


def _packed(value: Any) -> bytes:
    """As dumped(). Raises TypeError for what loaded() would refuse."""
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
    return data
