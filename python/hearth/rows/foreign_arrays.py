"""Rebuilds NumPy values of another host's pickles from kind, size, shape and bytes only.

NumPy's classes trust the dtype flags and sizes in a pickle, but accessing an array whose memory
does not match its dtype crashes the process.
"""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np

# Accepted item sizes by dtype kind; None: any.
_SIZES: dict[str, tuple[int, ...] | None] = {
    "b": (1,),
    "i": (1, 2, 4, 8),
    "u": (1, 2, 4, 8),
    "f": (2, 4, 8),
    "c": (8, 16),
    "M": (8,),
    "m": (8,),
    "S": None,
    "U": None,
    "V": None,
    "O": (8,),
}
_UNITS = {"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"}
_ORDERS = {"<", ">", "=", "|"}
_LARGEST = 1 << 31  # limit of an item's bytes, and of a time unit's multiplier


def _refuse(what: str) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(
        f"{what} is not accepted from another host: run a node on each executor, or pass rows of "
        "numbers, strings and arrays of them, or a DataFrame"
    )


class Maker:
    """Wraps a function that a pickle may call, but not modify."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]):
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        return self._make(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise _refuse("a pickle that modifies a function")


class Dtype:
    """Stands in for numpy.dtype while a pickle is read."""

    __slots__ = ("real", "used")

    def __init__(self, name: Any, align: Any = False, copy: Any = False):
        """Checks a pickle's arguments to numpy.dtype. Raises UnpicklingError."""
        known = re.fullmatch(r"([a-zA-Z])(\d{1,10})", name) if isinstance(name, str) else None
        kind, size = (known[1], int(known[2])) if known else ("", 0)
        sizes = _SIZES.get(kind, ())
        if size >= _LARGEST or not (sizes is None or size in sizes):
            raise _refuse(f"an array of type {name!r:.80}")
        self.real = np.dtype(name)
        self.used = False

    def __setstate__(self, state: Any) -> None:
        """Sets byte order, time unit or fields; ignores the pickle's flags."""
        _, order, shape, names, fields, size, *rest = state
        if order not in _ORDERS or shape is not None:
            raise _refuse("an array whose items are arrays")
        if self.real.kind == "V" and names is not None:
            self.real = _structure(names, fields, size)
        elif self.real.kind in "Mm" and len(rest) == 3:
            self.real = _time(self.real.kind, rest[2])
        elif names is not None or fields is not None:
            raise _refuse("an array with fields of an unknown type")
        if size not in (-1, self.real.itemsize):
            raise _refuse(f"an array of {self.real} with items of {size!r:.80} bytes")
        self.real = self.real.newbyteorder(order)

    def check(self, count: int, size: int) -> np.dtype:
        """Returns the dtype. Raises UnpicklingError unless `count` items have `size` bytes."""
        self.used = True
        if self.real.hasobject or count * self.real.itemsize != size:
            raise _refuse(f"an array of {count} items of {self.real} in {size} bytes")
        return self.real


def _structure(names: Any, fields: Any, size: Any) -> np.dtype:
    if not isinstance(size, int) or not 0 < size < _LARGEST:
        raise _refuse(f"an array of structures of {size!r:.80} bytes")
    formats = []
    for name in names:
        field = _dtype_of(fields[name][0])
        field.used = True
        formats.append(field.real)
        if field.real.kind in "bO":  # a boolean's byte may be neither 0 nor 1
            raise _refuse("an array with fields that are objects or booleans")
    offsets = [fields[name][1] for name in names]
    kinds = {"names": list(names), "formats": formats, "offsets": offsets, "itemsize": size}
    return np.dtype(kinds)


def _time(kind: str, metadata: Any) -> np.dtype:
    unit, number, *_ = metadata[1]
    if unit == b"generic":
        return np.dtype(f"{kind}8")
    if unit.decode() not in _UNITS or not 0 < number < _LARGEST:
        raise _refuse(f"an array of times whose unit is {unit!r:.80}")
    return np.dtype(f"{kind}8[{int(number)}{unit.decode()}]")


def _dtype_of(value: Any) -> Dtype:
    if not isinstance(value, Dtype):
        raise _refuse("an array without a type")
    return value


def _count(shape: Any) -> int:
    if not isinstance(shape, tuple) or any(type(n) is not int or n < 0 for n in shape):
        raise _refuse(f"an array of shape {shape!r:.80}")
    return math.prod(shape)


def _flat(data: Any, dtype: Any, count: int) -> np.ndarray:
    """The items as an array, which shares the memory of `data` unless they are booleans."""
    if not isinstance(data, (bytes, bytearray)):
        raise _refuse(f"an array in a {type(data).__name__}")
    kind = _dtype_of(dtype).check(count, len(data))
    if kind.kind == "b":  # NumPy requires each byte to be 0 or 1
        return np.frombuffer(data, np.uint8) != 0
    return np.frombuffer(data, kind)


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> np.ndarray:
    flat = _flat(data, dtype, _count(shape))
    if order == "K" and axes is not None:
        return flat.reshape(shape).transpose(axes)
    return flat.reshape(shape, order=order)


def _scalar(dtype: Any, data: Any = b"") -> Any:
    if data == b"" and _dtype_of(dtype).real.itemsize == 0:
        dtype.used = True
        return dtype.real.type()  # an empty string
    return _flat(data, dtype, 1)[0]


class Unfinished:
    """Stands in for an array whose content the pickle has not set yet."""

    __slots__ = ("array",)
    __hash__ = None

    def __init__(self) -> None:
        self.array: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, data = state
        order, count = "F" if fortran else "C", _count(shape)
        if isinstance(data, list) and _dtype_of(dtype).real.hasobject and len(data) == count:
            dtype.used = True
            flat = np.empty(count, object)
            for i, item in enumerate(data):
                flat[i] = item
        else:
            flat = _flat(data, dtype, count)
            native = flat.dtype.kind == "V" or flat.dtype.isnative
            flat = flat.copy() if native else flat.astype(flat.dtype.newbyteorder("="))
        self.array = flat.reshape(shape, order=order)


class ForeignArrays:
    """Stand-ins for NumPy's functions while one pickle is read. Not thread-safe."""

    def __init__(self) -> None:
        self._dtypes: list[Dtype] = []
        self._unfinished = False

    def function(self, name: str) -> Maker:
        """The stand-in for NumPy's function or class `name`.

        Raises:
            KeyError: pickles of arrays do not use the name.
        """
        return {
            "dtype": Maker(self._dtype),
            "ndarray": Maker(_no_call),
            "scalar": Maker(_scalar),
            "_frombuffer": Maker(_from_buffer),
            "_reconstruct": Maker(self._reconstruct),
        }[name]

    @staticmethod
    def guarded(function: Callable[..., Any]) -> Maker:
        """Wraps a function so that a pickle can only call it."""
        return Maker(function)

    def finished(self, value: Any) -> Any:
        """Returns the complete value, with arrays in place of their stand-ins.

        Raises:
            UnpicklingError: the pickle has an incomplete array.
            RecursionError: the value is nested too deeply.
        """
        if not all(dtype.used for dtype in self._dtypes):
            raise _refuse("a type without an array")
        return _finish(value, {}) if self._unfinished else value

    def _dtype(self, *arguments: Any) -> Dtype:
        self._dtypes.append(Dtype(*arguments))
        return self._dtypes[-1]

    def _reconstruct(self, *_: Any) -> Unfinished:
        self._unfinished = True
        return Unfinished()


def _no_call(*_: Any) -> None:
    raise _refuse("an array pickled as a constructor call")


def _finish(value: Any, done: dict[int, tuple[Any, Any]]) -> Any:
    """Replaces the stand-ins in a value, in place where possible (lists, dicts)."""
    if not isinstance(value, (list, tuple, dict, Unfinished)):
        return value
    if id(value) in done:
        return done[id(value)][1]
    result = value.array if isinstance(value, Unfinished) else value
    if result is None:
        raise _refuse("an array without content")
    done[id(value)] = value, result  # keeps `value` alive, so its id stays unique
    if isinstance(result, np.ndarray):
        if result.dtype.kind == "O":
            for i, item in enumerate(result.flat):
                result.flat[i] = _finish(item, done)
    elif isinstance(value, list):
        value[:] = [_finish(item, done) for item in value]
    elif isinstance(value, dict):
        for key, item in list(value.items()):
            value[key] = _finish(item, done)
    else:
        result = _finish_tuple(value, done)
        done[id(value)] = value, result
    return result


def _finish_tuple(value: tuple[Any, ...], done: dict[int, tuple[Any, Any]]) -> tuple[Any, ...]:
    items = [_finish(item, done) for item in value]
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    result = tuple.__new__(type(value), items)
    if hasattr(value, "__dict__"):  # the names of a Row's fields
        result.__dict__.update(value.__dict__)
    return result
