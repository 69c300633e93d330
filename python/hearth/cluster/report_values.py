"""Validates a program's reports, and serializes them as JSON."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping
from typing import Any

from hearth.errors import invalid

Message = dict[str, Any]

# Limit of one report as JSON: it is sent as one datagram on a unix socket.
MAX_BYTES = 128 << 10


def metrics_of(values: Mapping[Any, Any]) -> dict[str, float]:
    """The values as Python floats, by name.

    Raises:
        TypeError: a name is not a string, or a value is not a single number.
        ValueError: a name is empty or invalid Unicode, or no value is given.
    """
    if not values:
        raise invalid("report() got no metric: name at least one, as in report(step=1, loss=x)")
    return {_name_of(name): number_of(name, value) for name, value in values.items()}


def _name_of(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(
            f"report() got a {type(name).__name__} as the name of a metric, which must be a string"
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise invalid(f"report() got the name {name!r}, which is invalid Unicode") from None
    if not name.strip():
        raise invalid("report() got an empty name of a metric")
    return name


def number_of(name: str, value: Any) -> float:
    """Converts a number, NumPy scalar, or zero-dimensional array or tensor to a float."""
    shape = getattr(value, "shape", ())
    if not isinstance(value, str | bytes | bytearray) and len(shape) == 0:
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            pass
    of_shape = f" of shape {list(shape)}" if len(shape) else ""
    raise TypeError(
        f"report() got a {type(value).__name__}{of_shape} as {name!r}: a metric must be a number, "
        "a NumPy scalar or a zero-dimensional tensor"
    )


def step_of(step: Any) -> int:
    """Converts a step to an int. Raises TypeError or ValueError if it is invalid."""
    if isinstance(step, bool) or not hasattr(type(step), "__index__"):
        raise TypeError(f"report() got step={step!r}: a step must be an integer")
    try:
        number = operator.index(step)
    except (TypeError, ValueError, RuntimeError):  # e.g. a tensor that is not an integer
        raise TypeError(f"report() got step={step!r}: a step must be an integer") from None
    if not 0 <= number < 2**63:
        raise invalid(f"report() got step={number}: a step must be from 0 to 2^63 - 1")
    return number


def packed(message: Message) -> bytes:
    """Serializes a message with "values" as JSON; values that JSON lacks, like NaN, become strings.

    Raises:
        ValueError: the JSON is longer than MAX_BYTES.
    """
    values = {k: v if math.isfinite(v) else str(v) for k, v in message.get("values", {}).items()}
    data = json.dumps({**message, "values": values}).encode()
    if len(data) > MAX_BYTES:
        raise invalid(
            f"report() got {len(values)} metrics, {len(data)} bytes with their names, "
            f"but the limit is {MAX_BYTES}: report fewer at once"
        )
    return data


def unpacked_values(values: Mapping[str, Any]) -> dict[str, float]:
    """The values of a packed message."""
    return {name: float(value) for name, value in values.items()}
