"""Caffe's messages as classes of the `protobuf` package, for programs that call protobuf.

The classes are generated on import from the fields that the engine knows. Their descriptor pool is
private, so they do not conflict with another package's Caffe messages. Importing raises ImportError
if protobuf is not installed.
"""

from __future__ import annotations

from typing import Any

from hearth.native._core import message_schema

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

    _message_class = message_factory.GetMessageClass
except (ImportError, AttributeError) as error:
    raise ImportError(
        f"caffe_pb2 needs the protobuf package, 4.22 or newer: pip install protobuf ({error})"
    ) from error

_PACKAGE = "caffe"
_FIELD = descriptor_pb2.FieldDescriptorProto


def _default_text(kind: str, value: Any) -> str | None:
    """The default value as descriptors store it; None if it is the type's zero value."""
    if not value or kind == "bytes":
        return None
    return "true" if value is True else str(value)


def _add_field(message: Any, facts: dict[str, Any], enums: dict[str, dict[str, int]]) -> None:
    field = message.field.add(
        name=facts["name"],
        number=facts["number"],
        type=getattr(_FIELD, "TYPE_" + facts["type"].upper()),
        label=getattr(_FIELD, "LABEL_" + facts["label"].upper()),
    )
    if facts["type_name"]:
        field.type_name = f".{_PACKAGE}.{facts['type_name']}"
    if facts["packed"]:
        field.options.packed = True
    if facts["type"] == "enum" and facts["default"] is not None:
        numbers = enums[facts["type_name"]]
        field.default_value = next(
            name for name, number in numbers.items() if number == facts["default"]
        )
    else:
        default = _default_text(facts["type"], facts["default"])
        if default is not None:
            field.default_value = default


def _file() -> Any:
    """The descriptor of a file with every message."""
    schema = message_schema()
    file = descriptor_pb2.FileDescriptorProto(
        name="hearth/caffe.proto", package=_PACKAGE, syntax="proto2"
    )
    messages: dict[str, Any] = {}
    for name in sorted(schema["messages"], key=lambda name: (name.count("."), name)):
        outer, _, short = name.rpartition(".")
        message = messages[outer].nested_type.add() if outer else file.message_type.add()
        message.name = short
        messages[name] = message
        for facts in schema["messages"][name]:
            _add_field(message, facts, schema["enums"])
    for name, values in schema["enums"].items():
        outer, _, short = name.rpartition(".")
        enum = (messages[outer] if outer else file).enum_type.add(name=short)
        for value, number in values.items():
            enum.value.add(name=value, number=number)
    return file


def _make() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_file().SerializeToString())
    file = pool.FindFileByName("hearth/caffe.proto")
    made: dict[str, Any] = {"DESCRIPTOR": file}
    for name, message in file.message_types_by_name.items():
        made[name] = _message_class(message)
    for name, enum in file.enum_types_by_name.items():
        made[name] = EnumTypeWrapper(enum)
        made.update((value.name, value.number) for value in enum.values)
    return made


globals().update(_make())
