"""Parses timestamps passed by users."""

from __future__ import annotations

from datetime import UTC, datetime

from hearth.errors import invalid


def moment(name: str, value: str | datetime) -> datetime:
    """Parses a time with its time zone.

    Args:
        name: the argument's name, for messages.
        value: a datetime, or a text such as 2026-11-27T12:00:00+00:00.

    Raises:
        ValueError: `value` is not a timestamp, or has no time zone.
    """
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise invalid(
            f"{name}={value!r} is not a timestamp: write it as '2026-11-27T12:00:00+00:00'"
        ) from None
    if found.tzinfo is None:
        raise invalid(f"{name}={value!r} has no time zone: append one, such as +00:00 for UTC")
    return found.astimezone(UTC)
