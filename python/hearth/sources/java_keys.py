"""Keys of CaffeOnSpark's SequenceFiles, which Java serialized: their values, without any class."""

from __future__ import annotations

import struct
from typing import Any

# What a record of the stream begins with.
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING = 0x70, 0x71, 0x72, 0x73, 0x74
_BLOCK, _END, _LONG_BLOCK, _LONG_STRING = 0x77, 0x78, 0x7A, 0x7C
_HEADER = b"\xac\xed\x00\x05"
_FIRST_HANDLE = 0x7E0000
# Flags of a class.
_OWN_WRITER, _SERIALIZABLE = 1, 2
_NUMBERS = {"B": ">b", "C": ">H", "D": ">d", "F": ">f", "I": ">i", "J": ">q", "S": ">h", "Z": ">?"}
_DEEPEST = 16  # a tuple holds strings and numbers in boxes


class _Class:
    """A class as the stream describes it: nothing but the names and types of its fields."""

    def __init__(self, name: str):
        self.name = name
        self.flags = 0
        self.fields: list[tuple[str, str]] = []
        self.parent: _Class | None = None

    def line(self) -> list[_Class]:
        """Itself and the classes above it, the topmost first."""
        found: list[_Class] = []
        known: _Class | None = self
        while known is not None:
            if known in found:
                raise ValueError("a class that inherits from itself")
            if len(found) == _DEEPEST:
                raise ValueError(f"a class with more than {_DEEPEST - 1} above it")
            found.insert(0, known)
            known = known.parent
        return found


# By the number that the class has in its stream: its bytes, what they say, and the values in them.
_SEEN: dict[int, list[tuple[bytes, _Class, list[Any]]]] = {}
_MOST_SEEN, _LONGEST_SEEN, _MOST_PLACES = 8, 1024, 64


class _Stream:
    """One serialized value. Objects become dicts of their fields, boxed numbers the numbers."""

    def __init__(self, data: bytes):
        self._data, self._at = data, 0
        self._known: list[Any] = []
        self._lowest = 0  # of the numbers of values that were referred to
        self._depth = 0

    def value(self) -> Any:
        if self._take(4) != _HEADER:
            raise ValueError("it is no value that Java serialized")
        return self._content()

    def _take(self, count: int) -> bytes:
        part = self._data[self._at : self._at + count]
        if len(part) != count:
            raise ValueError(f"it ends after {len(self._data)} bytes, in the middle of a value")
        self._at += count
        return part

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _text(self, form: str = ">H") -> str:
        data = self._take(self._number(form)).replace(b"\xc0\x80", b"\0")
        text = data.decode("utf-8", "surrogatepass")  # Java's own form: characters of two parts
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")

    def _content(self) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("its values are nested too deep for a key")
        kind = self._number(">B")
        if kind == _NULL:
            value = None
        elif kind == _REFERENCE:
            value = self._referenced()
        elif kind == _CLASS:
            value = self._class()
        elif kind == _OBJECT:
            value = self._object()
        elif kind in (_STRING, _LONG_STRING):
            value = self._text(">H" if kind == _STRING else ">Q")
            self._known.append(value)
        else:
            raise ValueError(f"it holds a value of kind {kind:#x}, which no key has")
        self._depth -= 1
        return value

    def _referenced(self) -> Any:
        number = self._number(">I") - _FIRST_HANDLE
        if not 0 <= number < len(self._known):
            raise ValueError("it refers to a value that it does not hold")
        self._lowest = min(self._lowest, number)
        return self._known[number]

    def _class(self) -> _Class:
        """One whose bytes were seen before at a place with this number is not read again: the keys
        of a file have the same few. Numbers of values before it would mean others there."""
        begin, place, outer = self._at, len(self._known), self._lowest
        for seen, described, known in _SEEN.get(place, ()):
            if self._data.startswith(seen, begin):
                self._at += len(seen)
                self._known += known
                return described
        self._lowest = place
        described = self._new_class()
        seen = self._data[begin : self._at]
        alone = self._lowest >= place and len(seen) < _LONGEST_SEEN and place < _MOST_PLACES
        if alone and len(entries := _SEEN.setdefault(place, [])) < _MOST_SEEN:
            entries.append((seen, described, self._known[place:]))
        self._lowest = min(outer, self._lowest)
        return described

    def _new_class(self) -> _Class:
        described = _Class(self._text())
        self._take(8)  # the version
        self._known.append(described)
        described.flags = self._number(">B")
        for _ in range(self._number(">H")):
            kind, name = chr(self._number(">B")), self._text()
            if kind in "[L":
                self._content()  # the name of the field's type
            elif kind not in _NUMBERS:
                raise ValueError(f"its field '{name}' is of no type that Java has")
            described.fields.append((kind, name))
        self._skip_annotation()
        described.parent = self._class_or_none()
        return described

    def _class_or_none(self) -> _Class | None:
        value = self._content()
        if value is not None and not isinstance(value, _Class):
            raise ValueError("it has a value in the place of a class")
        return value

    def _object(self) -> Any:
        described = self._class_or_none()
        if described is None:
            raise ValueError("it has an object of no class")
        fields: dict[str, Any] = {}
        place = len(self._known)
        self._known.append(fields)
        for part in described.line():
            if not part.flags & _SERIALIZABLE:
                raise ValueError(f"its object of class {part.name} writes itself")
            for kind, name in part.fields:
                form = _NUMBERS.get(kind)
                fields[name] = self._number(form) if form else self._content()
            if part.flags & _OWN_WRITER:
                self._skip_annotation()
        if described.name.startswith("java.lang.") and list(fields) == ["value"]:
            self._known[place] = fields["value"]  # a number in a box
            return fields["value"]
        return fields

    def _skip_annotation(self) -> None:
        while (kind := self._number(">B")) != _END:
            if kind == _BLOCK:
                self._take(self._number(">B"))
            elif kind == _LONG_BLOCK:
                self._take(self._number(">I"))
            else:
                self._at -= 1
                self._content()


def key_values(key: bytes) -> list[Any]:
    """What a pair or tuple of strings, numbers and booleans holds, in order.

    Raises:
        ValueError: it is none; the message says why.
    """
    try:
        fields = _Stream(key).value()
    except UnicodeError as error:
        raise ValueError(f"it holds a text that is none ({error.reason})") from None
    if isinstance(fields, dict):
        for names in (["first", "second"], *([f"_{i + 1}" for i in range(n)] for n in (2, 6))):
            if sorted(fields) == names:
                return [fields[name] for name in names]
    raise ValueError("it is neither a pair nor a tuple of two or six values")
