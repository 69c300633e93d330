"""Values that ranks return to the driver: tensors, numbers, strings, and collections of them."""

from __future__ import annotations

import io
import pickle
from typing import Any

from hearth.cluster import results

_TENSORS, _LENGTH_BYTES = b"T", 8


def give(ctx: Any, value: Any) -> None:
    """Sends a rank's value to the driver. Raises TypeError for types the driver does not accept."""
    ctx.mgr.report_value(_packed(value))


def of_rank_0(cluster: Any) -> Any:
    """Rank 0's value, in the driver once the cluster has ended; None if rank 0 sent no value."""
    pieces = cluster.running.watch.values(0)
    return loaded(results.joined(pieces)) if pieces else None


def dumped(value: Any) -> bytes:
    """Serializes a value for loaded()."""
    import torch

    data = io.BytesIO()
    torch.save(value, data)
    return data.getvalue()


def loaded(data: bytes) -> Any:
    """The inverse of dumped(); runs no code from the data."""
    import torch

    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)


def packed_result(value: Any) -> bytes:
    """Serializes a main function's return value: the length of the JSON, the JSON, then the
    tensors. Raises TypeError for unsupported types."""
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
    """The value of packed_result() in the driver; tensors are on the CPU."""
    if data[:1] != _TENSORS:
        return results.unpacked(data)
    start = 1 + _LENGTH_BYTES
    end = start + int.from_bytes(data[1:start], "little")
    return results.unpacked(data[start:end], loaded(data[end:]))


def _packed(value: Any) -> bytes:
    """Like dumped(). Raises TypeError for types that loaded() would refuse."""
    try:
        data = dumped(value)
        loaded(data)
    except (pickle.PickleError, AttributeError, TypeError):
        # Not chained, because PyTorch's message suggests weights_only=False.
        raise TypeError(
            f"the function returned a {type(value).__name__}, but the driver only accepts tensors, "
            "numbers, strings, and lists, tuples and dicts of them, as it runs no code that came "
            "over a network: return model.state_dict() instead of a model, "
            "torch.from_numpy(array) instead of an array"
        ) from None
    return data
