"""Caffe's messages (NetParameter, LayerParameter, ...) as lightweight Python objects.

They behave like protobuf's for writing and reading nets: attributes with defaults, lists for
repeated fields, `add()`, `HasField`, `CopyFrom`, and `str()`, which returns prototxt. They have
only the fields that the engine knows. `caffe.proto.caffe_pb2` has protobuf's own classes.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

from hearth.errors import invalid
from hearth.native._core import message_schema, parse_prototxt

__all__ = ["Message", "enum_values", "field_names"]

Field = dict[str, Any]


@cache
def _schema() -> dict[str, Any]:
    return message_schema()


@cache
def _fields(type_name: str) -> dict[str, Field]:
    messages = _schema()["messages"]
    if type_name not in messages:
        raise invalid(f"unknown message type {type_name!r}{_nearest(type_name, messages)}")
    return {field["name"]: field for field in messages[type_name]}


def field_names(type_name: str) -> list[str]:
    """The fields of a message type by number. Raises ValueError for an unknown type."""
    return list(_fields(type_name))


def field_type(type_name: str, name: str) -> str:
    """The message or enum type of a field; "" for numbers and text."""
    return _fields(type_name)[name]["type_name"]


def enum_values(type_name: str) -> dict[str, int]:
    """The numbers of all enum values in a message type such as PoolingParameter."""
    values: dict[str, int] = {}
    for name, numbers in _schema()["enums"].items():
        if name.rpartition(".")[0] == type_name:
            values.update(numbers)
    return values


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _checked(field: Field, value: Any) -> Any:
    """Checks a field's value and returns it in the form in which it is stored. Raises TypeError or
    ValueError naming the field."""
    kind = field["type"]
    try:
        if kind == "message":
            return _checked_message(field, value)
        if kind == "enum":
            return _enum_number(field, value)
        if kind in ("string", "bytes"):
            if not isinstance(value, str if kind == "string" else bytes):
                raise TypeError("not " + ("text" if kind == "string" else "bytes"))
            return value
        if kind == "bool":
            return bool(operator.index(bool(value) if isinstance(value, np.bool_) else value))
        if kind in ("float", "double"):
            if isinstance(value, str):
                raise TypeError("not a number")
            return float(np.float32(value)) if kind == "float" else float(value)
        number = operator.index(value)
        if kind == "uint32" and number < 0:
            raise invalid("negative")
        return number
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"field {field['name']!r} expects {kind} {field['type_name']}".rstrip()
            + f", found {value!r}: {error}"
        ) from error


def _checked_message(field: Field, value: Any) -> Message:
    if isinstance(value, dict):
        return Message(field["type_name"], **value)
    if not isinstance(value, Message) or value.type_name != field["type_name"]:
        raise TypeError("pass a dict or a message of this type")
    return value


def _enum_number(field: Field, value: Any) -> int:
    numbers = _schema()["enums"][field["type_name"]]
    if isinstance(value, str):
        if value not in numbers:
            raise invalid(f"unknown name{_nearest(value, numbers)}")
        return numbers[value]
    number = operator.index(value)
    if number not in numbers.values():
        raise invalid(f"the values of this enum are {numbers}")
    return number


class Repeated(list):
    """The values of a repeated field, checked on insertion."""

    def __init__(self, field: Field, values: Iterable[Any] = ()) -> None:
        self._field = field
        super().__init__(_checked(field, value) for value in values)

    def append(self, value: Any) -> None:
        """Adds a value; raises TypeError or ValueError if the field cannot hold it."""
        super().append(_checked(self._field, value))

    def extend(self, values: Iterable[Any]) -> None:
        """Adds all values; if the field cannot hold one of them, adds none."""
        super().extend([_checked(self._field, value) for value in values])

    def insert(self, index: int, value: Any) -> None:
        """Inserts a value before `index`."""
        super().insert(index, _checked(self._field, value))

    def __setitem__(self, index: Any, value: Any) -> None:
        single = not isinstance(index, slice)
        checked = _checked(self._field, value) if single else Repeated(self._field, value)
        super().__setitem__(index, checked)

    def add(self, **fields: Any) -> Message:
        """Appends a message with these fields and returns it."""
        self.append(fields)
        return self[-1]


class Message:
    """A message of one type; see the module. Raises AttributeError for unknown fields."""

    __slots__ = ("_values", "type_name")
    _values: dict[str, Any]
    type_name: str

    def __init__(self, type_name: str, **fields: Any) -> None:
        _fields(type_name)
        object.__setattr__(self, "type_name", type_name)
        object.__setattr__(self, "_values", {})
        for name, value in fields.items():
            self.assign(name, value)

    @classmethod
    def from_text(cls, type_name: str, text: str, path: str = "prototxt") -> Message:
        """Parses prototxt; `type_name` is NetParameter or SolverParameter.

        Raises:
            ValueError: "path:line:column: found ..., expected ...".
        """
        return cls(type_name, **parse_prototxt(text, path, type_name))

    def _field(self, name: str) -> Field:
        fields = _fields(self.type_name)
        if name not in fields:
            raise AttributeError(f"{self.type_name} has no field {name!r}{_nearest(name, fields)}")
        return fields[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        field = self._field(name)
        if name not in self._values:
            # Reading an unset submessage or list creates an empty one, which counts as unset.
            if field["label"] == "repeated":
                self._values[name] = Repeated(field)
            elif field["type"] == "message":
                self._values[name] = Message(field["type_name"])
            else:
                return field["default"]
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._field(name)
        if field["label"] == "repeated":
            if isinstance(value, (str, bytes, dict)):
                raise TypeError(f"field {name!r} is repeated: use a list, not {value!r}")
            self._values[name] = Repeated(field, value)
        else:
            self._values[name] = _checked(field, value)

    def assign(self, name: str, value: Any) -> None:
        """Sets a field; one value for a repeated field becomes a list of one."""
        single = not isinstance(value, (list, tuple)) and not hasattr(value, "tolist")
        if self._field(name)["label"] == "repeated" and single:
            value = [value]
        setattr(self, name, value)

    def HasField(self, name: str) -> bool:
        """Whether a singular field is set."""
        self._field(name)
        value = self._values.get(name)
        return value is not None and not (isinstance(value, Message) and value._is_empty())

    def ClearField(self, name: str) -> None:
        """Unsets a field."""
        self._field(name)
        self._values.pop(name, None)

    def MergeFrom(self, other: Message) -> None:
        """Merges the other's fields: appends lists, merges submessages, replaces other values."""
        for name, value in other._values.items():
            if isinstance(value, Repeated):
                getattr(self, name).extend(_copy(item) for item in value)
            elif isinstance(value, Message):
                getattr(self, name).MergeFrom(value)
            else:
                self._values[name] = value

    def CopyFrom(self, other: Message) -> None:
        """Becomes equal to `other`."""
        source = _copy(other)
        self._values.clear()
        self.MergeFrom(source)

    def ListFields(self) -> list[tuple[str, Any]]:
        """(name, value) of all set fields by number."""
        return [
            (name, self._values[name])
            for name in _fields(self.type_name)
            if not _is_absent(self._values.get(name))
        ]

    def _is_empty(self) -> bool:
        return not self.ListFields()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return self.type_name == other.type_name and self.ListFields() == other.ListFields()

    __hash__ = None  # type: ignore[assignment]

    def _lines(self, indent: str) -> Iterator[str]:
        for name, value in self.ListFields():
            for item in value if isinstance(value, Repeated) else [value]:
                if isinstance(item, Message):
                    yield f"{indent}{name} {{"
                    yield from item._lines(indent + "  ")
                    yield f"{indent}}}"
                else:
                    yield f"{indent}{name}: {_scalar_text(self._field(name), item)}"

    def __str__(self) -> str:
        return "".join(line + "\n" for line in self._lines(""))

    __repr__ = __str__


def _copy(value: Any) -> Any:
    if not isinstance(value, Message):
        return value
    copy = Message(value.type_name)
    copy.MergeFrom(value)
    return copy


def _is_absent(value: Any) -> bool:
    if isinstance(value, Message):
        return value._is_empty()
    return value is None or (isinstance(value, Repeated) and not value)


def _scalar_text(field: Field, value: Any) -> str:
    kind = field["type"]
    if kind == "enum":
        numbers = _schema()["enums"][field["type_name"]]
        return next(name for name, number in numbers.items() if number == value)
    if kind in ("string", "bytes"):
        return '"' + "".join(map(_escaped, value.encode() if kind == "string" else value)) + '"'
    if kind == "float":
        return str(np.float32(value))
    return str(value).lower() if kind == "bool" else repr(value)


def _escaped(byte: int) -> str:
    if byte in b'"\\':
        return "\\" + chr(byte)
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
