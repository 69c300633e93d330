"""Sends return values of main functions to the driver as data, so that the driver runs no code of a
node."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

# The rendezvous carries at most a megabyte per message.
_PIECE = 600_000
_MOST_BYTES = 256 << 20
_VALUE, _REFUSED = b"J", b"E"
_ADVICE = (
    "return numbers, strings, bytes, NumPy arrays, tensors in PyTorch programs, and lists, "
    "tuples and dicts of them, and write larger values to a file"
)


def pieces(data: bytes) -> list[str]:
    """The data as texts that fit into messages; joined() is the inverse."""
    text = base64.b64encode(data).decode()
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]


def joined(parts: Iterable[str]) -> bytes:
    """The data from which pieces() made these texts."""
    return base64.b64decode("".join(parts))


def give(context: Any, value: Any, report: Callable[[bytes], None]) -> None:
    """Reports a main function's return value to the driver. For an unsupported value it reports the
    reason instead of failing, because the program may not need the value. None is not sent."""
    if value is None or not hasattr(context, "pack_result"):
        return
    try:
        data = context.pack_result(value)
        if len(data) > _MOST_BYTES:
            size = f"{len(data) >> 20} MB"
            raise TypeError(f"a {type(value).__name__} of {size}, more than {_MOST_BYTES >> 20} MB")
    except Exception as error:
        data = _REFUSED + str(error).encode(errors="replace")
    report(data)


def packed(value: Any, keep: Callable[[Any], int | None] = lambda _: None) -> bytes:
    """A value as JSON. Raises TypeError, which names the type, for unsupported values.

    `keep`: for a value that the caller transfers itself, returns the value's number; else None.
    """
    return _VALUE + json.dumps(_tree(value, keep)).encode()


def unpacked(data: bytes, kept: Sequence[Any] = ()) -> Any:
    """The inverse of packed(); `kept`: values that the caller transferred."""
    return _value(json.loads(data[1:]), kept)


def received(rank: int, parts: Iterable[str]) -> bytes:
    """The bytes of pack_result() on a rank.

    Raises:
        TypeError: the value is unsupported.
    """
    data = joined(parts)
    if data[:1] == _REFUSED:
        reason = data[1:].decode()
        raise TypeError(f"rank {rank}'s main function returned {reason}: {_ADVICE}")
    return data


def _tree(value: Any, keep: Callable[[Any], int | None]) -> Any:
    """The value's JSON form: plain values unchanged, others as {kind: content}."""
    if (number := keep(value)) is not None:
        return {"kept": number}
    if value is None or isinstance(value, bool | int | float | str):
        return _plain(value)
    if isinstance(value, list):
        return [_tree(each, keep) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [_tree(each, keep) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[_tree(key, keep), _tree(each, keep)] for key, each in value.items()]}
    if isinstance(value, bytes | bytearray):
        return {"bytes": base64.b64encode(value).decode()}
    if hasattr(value, "dtype") and not value.dtype.hasobject and type(value).__module__ == "numpy":
        return _array(value, keep)
    raise TypeError(f"a {type(value).__module__}.{type(value).__qualname__}")


def _plain(value: Any) -> Any:
    """Converts subclasses, such as enumerations and NumPy's float64, to the plain type."""
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _array(value: Any, keep: Callable[[Any], int | None]) -> Any:
    if isinstance(value, np.generic):
        return _tree(value.item(), keep)
    data = io.BytesIO()
    np.save(data, value, allow_pickle=False)
    return {"array": base64.b64encode(data.getvalue()).decode()}


def _value(tree: Any, kept: Sequence[Any]) -> Any:
    if isinstance(tree, list):
        return [_value(each, kept) for each in tree]
    if not isinstance(tree, dict):
        return tree
    (kind, content), *_ = tree.items()
    if kind == "tuple":
        return tuple(_value(each, kept) for each in content)
    if kind == "dict":
        return {_value(key, kept): _value(each, kept) for key, each in content}
    if kind == "kept":
        return kept[content]
    data = base64.b64decode(content)
    if kind == "bytes":
        return data
    return np.load(io.BytesIO(data), allow_pickle=False)
