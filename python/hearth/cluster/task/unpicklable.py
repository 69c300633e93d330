"""Finds the variable that prevents a main function from being pickled."""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections.abc import Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

_DEEPEST = 4


def describe(function: Any, args: Any) -> str | None:
    """Describes what cannot be pickled in a main function and its arguments: "the variable 'lock'
    of main(), a _thread.lock". None if each part can be pickled by itself."""
    for name, value in [("args", args), *_parts(function)]:
        if found := _culprit(name, value, _DEEPEST):
            return found
    return None


def _culprit(name: str, value: Any, depth: int) -> str | None:
    """Describes the innermost part of a value that cannot be pickled."""
    if _can_be_pickled(value):
        return None
    for part, inner in _parts(value) if depth else ():
        if found := _culprit(part, inner, depth - 1):
            return found
    kind = type(value)
    return f"{name}, a {kind.__module__}.{kind.__qualname__}"


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a value, each with a description of its location."""
    if isinstance(value, partial):
        yield from _parts(value.func)
        for inner in (*value.args, *value.keywords.values()):
            yield from _parts(inner) if callable(inner) else [("an argument", inner)]
    elif inspect.ismethod(value):
        yield f"the object of the method {value.__qualname__}()", value.__self__
    elif inspect.isfunction(value):
        found = inspect.getclosurevars(value)
        for name, inner in {**found.globals, **found.nonlocals}.items():
            yield f"the variable {name!r} of {value.__qualname__}()", inner
        for inner in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()):
            yield f"a default argument of {value.__qualname__}()", inner
    elif isinstance(value, Mapping):
        yield from ((f"the item {key!r}", inner) for key, inner in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"the item {number}", inner) for number, inner in enumerate(value))
    elif isinstance(value, SimpleNamespace | Namespace):
        yield from ((f"the attribute {key!r}", inner) for key, inner in vars(value).items())


def _can_be_pickled(value: Any) -> bool:
    from pyspark import cloudpickle

    try:
        cloudpickle.dumps(value)
        return True
    except Exception:
        return False
