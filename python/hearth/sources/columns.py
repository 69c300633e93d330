"""Parses column names in user arguments: `name`, or `name as alias`."""

from __future__ import annotations

from collections.abc import Sequence

from hearth.errors import invalid


def parse_column(item: str) -> tuple[str, str]:
    """Parses `name` or `name as alias` (as in dataframe_column_select) to (name, alias).

    Raises:
        ValueError: the item is another SQL expression, which only Spark can compute.
    """
    words = item.split()
    named = all(word.isidentifier() for word in words)  # unlike "a+1 as b"
    if named and len(words) == 1:
        return words[0], words[0]
    if named and len(words) == 3 and words[1].lower() == "as":
        return words[0], words[2]
    raise invalid(f"'{item}' is neither a column name nor 'name as alias'")


def column_pairs(items: Sequence[str], known: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """(name, alias) of each item; an item that is a known name is not parsed (it may have " as ").

    Raises like parse_column().
    """
    return tuple((item, item) if item in known else parse_column(item) for item in items)
