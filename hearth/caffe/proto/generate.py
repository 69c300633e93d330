"""Generates messages.h and messages.cc, the C++ classes of Caffe's file formats, from schema.txt.

Usage: generate.py SCHEMA OUTPUT_DIR
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

CPP_TYPES = {
    "int32": "int32_t",
    "int64": "int64_t",
    "uint32": "uint32_t",
    "float": "float",
    "double": "double",
    "bool": "bool",
    "string": "std::string",
    "bytes": "std::string",
}


@dataclass
class Enum:
    name: str
    values: list[tuple[str, int]]


@dataclass
class Field:
    number: int
    name: str
    label: str
    type: str
    packed: bool
    default: str | None

    @property
    def repeated(self) -> bool:
        return self.label == "r"


@dataclass
class Message:
    name: str
    enums: list[Enum] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)

    @property
    def cpp(self) -> str:
        return self.name.replace(".", "::")

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


def parse_enum(text: str) -> Enum:
    """Reads "enum NAME: A=0, B=1"."""
    name, _, values = text.removeprefix("enum ").partition(":")
    pairs = [value.strip().split("=") for value in values.split(",")]
    return Enum(name.strip(), [(key, int(number)) for key, number in pairs])


def parse_field(line: str) -> Field:
    """Reads "NUMBER<tab>NAME<tab>LABEL<tab>TYPE [packed] =DEFAULT"."""
    number, name, label, rest = line.strip().split("\t")
    match = re.fullmatch(r"(\S+)( \[packed\])?(?: =(.*))?", rest)
    if not match or label not in ("o", "r", "R"):
        raise ValueError(f"schema line not understood: {line!r}")
    return Field(int(number.lstrip("+*")), name, label, match[1], bool(match[2]), match[3])


def parse_schema(text: str) -> tuple[list[Enum], list[Message]]:
    """Returns the enums outside of messages, and the messages."""
    enums: list[Enum] = []
    messages: list[Message] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("enum "):
            enums.append(parse_enum(line))
        elif line.startswith("message "):
            messages.append(Message(line.split()[1]))
        elif line.strip().startswith("enum "):
            messages[-1].enums.append(parse_enum(line.strip()))
        else:
            messages[-1].fields.append(parse_field(line))
    return enums, messages


class Generator:
    """All types of the schema, and the two files that are generated from them."""

    def __init__(self, enums: list[Enum], messages: list[Message]) -> None:
        self.enums = enums
        self.messages = {message.name: message for message in messages}
        self.enum_types = {enum.name: enum for enum in enums}
        for message in messages:
            for enum in message.enums:
                self.enum_types[f"{message.name}.{enum.name}"] = enum

    def is_message(self, f: Field) -> bool:
        return f.type in self.messages

    def is_enum(self, f: Field) -> bool:
        return f.type in self.enum_types

    def stored_type(self, f: Field) -> str:
        """The C++ storage type of one value."""
        if self.is_message(f):
            return f.type.replace(".", "::")
        return "int32_t" if self.is_enum(f) else CPP_TYPES[f.type]

    def default(self, f: Field) -> str:
        """The default value of a singular field as C++."""
        if self.is_enum(f):
            values = dict(self.enum_types[f.type].values)
            return str(values[f.default] if f.default else self.enum_types[f.type].values[0][1])
        if f.type == "bool":
            return "true" if f.default == "True" else "false"
        if f.type in ("string", "bytes"):
            return f'"{f.default}"' if f.default else '""'
        if f.type == "float":
            return f"{float(f.default or 0)!r}f"
        return f.default or "0"

    def ordered(self) -> list[Message]:
        """Top-level messages, each after the messages it contains."""
        done: list[Message] = []

        def visit(message: Message) -> None:
            if message in done:
                return
            for inner in self.with_nested(message):
                for f in inner.fields:
                    owner = f.type.partition(".")[0]
                    if self.is_message(f) and owner != message.name:
                        visit(self.messages[owner])
            done.append(message)

        for message in self.messages.values():
            if "." not in message.name:
                visit(message)
        return done

    def with_nested(self, message: Message) -> list[Message]:
        nested = [m for m in self.messages.values() if m.name.startswith(message.name + ".")]
        return [*nested, message]

    # ---- messages.h ----

    @staticmethod
    def moved(t: str) -> str:
        return "std::move(v)" if t == "std::string" else "v"

    def accessors(self, f: Field, index: int) -> list[str]:
        n, t = f.name, self.stored_type(f)
        if f.repeated:
            element = f"const {t}&" if t == "std::string" or self.is_message(f) else t
            if self.is_message(f):
                add = [
                    f"{t}* add_{n}() {{ return &{n}_.emplace_back(); }}",
                    f"{t}* mutable_{n}(int i) {{ return &{n}_[i]; }}",
                ]
            else:
                add = [
                    f"void add_{n}({t} v) {{ {n}_.push_back({self.moved(t)}); }}",
                    f"void set_{n}(int i, {t} v) {{ {n}_[i] = {self.moved(t)}; }}",
                ]
            return [
                f"const std::vector<{t}>& {n}() const {{ return {n}_; }}",
                f"{element} {n}(int i) const {{ return {n}_[i]; }}",
                f"int {n}_size() const {{ return static_cast<int>({n}_.size()); }}",
                *add,
                f"std::vector<{t}>* mutable_{n}() {{ return &{n}_; }}",
                f"void clear_{n}() {{ {n}_.clear(); }}",
            ]
        if self.is_message(f):
            return [
                f"const {t}& {n}() const {{ return {n}_.get(); }}",
                f"bool has_{n}() const {{ return {n}_.has(); }}",
                f"{t}* mutable_{n}() {{ return &{n}_.Mutable(); }}",
                f"void clear_{n}() {{ {n}_.Clear(); }}",
            ]
        has = f"bool has_{n}() const {{ return Has({index}); }}"
        clear = f"void clear_{n}() {{ {n}_ = {self.default(f)}; SetPresent({index}, false); }}"
        if self.is_enum(f):
            e = f.type.replace(".", "::")
            return [
                f"{e} {n}() const {{ return static_cast<{e}>({n}_); }}",
                has,
                f"void set_{n}({e} v) {{ {n}_ = v; SetPresent({index}, true); }}",
                clear,
            ]
        result = f"const {t}&" if t == "std::string" else t
        lines = [
            f"{result} {n}() const {{ return {n}_; }}",
            has,
            f"void set_{n}({t} v) {{ {n}_ = {self.moved(t)}; SetPresent({index}, true); }}",
            clear,
        ]
        if t == "std::string":
            lines.append(
                f"std::string* mutable_{n}() {{ SetPresent({index}, true); return &{n}_; }}"
            )
        return lines

    def member(self, f: Field) -> str:
        t = self.stored_type(f)
        if f.repeated:
            return f"std::vector<{t}> {f.name}_;"
        if self.is_message(f):
            return f"Box<{t}> {f.name}_;"
        return f"{t} {f.name}_ = {self.default(f)};"

    def class_body(self, message: Message) -> list[str]:
        name = message.short
        lines = [f"class {name} final : public Message {{", " public:"]
        for enum in message.enums:
            values = ", ".join(f"{key} = {number}" for key, number in enum.values)
            lines.append(f"  enum {enum.name} : int32_t {{ {values} }};")
        for nested in self.with_nested(message)[:-1]:
            lines += ["  " + line for line in self.class_body(nested)]
        lines += [
            f"  {name}();",
            f"  ~{name}() override;",
            f"  {name}(const {name}&);",
            f"  {name}({name}&&) noexcept;",
            f"  {name}& operator=(const {name}&);",
            f"  {name}& operator=({name}&&) noexcept;",
            "  static const MessageDescriptor& Descriptor();",
            f"  static const {name}& Default();",
            "  const MessageDescriptor& descriptor() const override { return Descriptor(); }",
            "",
        ]
        for index, f in enumerate(message.fields):
            lines += ["  " + line for line in self.accessors(f, index)]
        lines += ["", " private:"]
        lines += ["  " + self.member(f) for f in message.fields]
        return [*lines, "};"]

    def header(self) -> str:
        lines = [
            "// Generated by generate.py from schema.txt.",
            "#pragma once",
            "",
            '#include "hearth/caffe/proto/message.h"',
            "",
            "namespace hearth::caffe {",
            "",
        ]
        for enum in self.enums:
            values = ", ".join(f"{key} = {number}" for key, number in enum.values)
            lines += [f"enum {enum.name} : int32_t {{ {values} }};", ""]
        for message in self.ordered():
            lines += [*self.class_body(message), ""]
        return "\n".join([*lines, "}  // namespace hearth::caffe", ""])

    # ---- messages.cc ----

    def enum_tables(self) -> list[str]:
        lines = ["namespace {", ""]
        for name, enum in self.enum_types.items():
            c = name.replace(".", "_")
            values = ", ".join(f'{{"{key}", {number}}}' for key, number in enum.values)
            lines += [
                f"constexpr EnumValue k{c}Values[] = {{{values}}};",
                f'constexpr EnumDescriptor k{c} = {{"{name}", k{c}Values}};',
            ]
        return [*lines, "", "}  // namespace", ""]

    def field_row(self, message: Message, f: Field, index: int) -> str:
        flags = ", ".join(
            "true" if flag else "false" for flag in (f.repeated, f.label == "R", f.packed)
        )
        storage = f"[](Message& m) -> void* {{ return &static_cast<{message.cpp}&>(m).{f.name}_; }}"
        enum, descriptor, access = "nullptr", "nullptr", "nullptr"
        kind = f.type.capitalize()
        if self.is_enum(f):
            kind, enum = "Enum", "&k" + f.type.replace(".", "_")
        elif self.is_message(f):
            t = f.type.replace(".", "::")
            kind, descriptor = "Message", f"&{t}::Descriptor"
            access = f"&k{'Repeated' if f.repeated else 'Singular'}Access<{t}>"
        return (
            f'      {{"{f.name}", {f.number}, FieldType::k{kind}, {flags}, {index}, '
            f"{storage}, {enum}, {descriptor}, {access}}},"
        )

    def definitions(self, message: Message) -> list[str]:
        c, n = message.cpp, message.short
        lines = [
            f"{c}::{n}() = default;",
            f"{c}::~{n}() = default;",
            f"{c}::{n}(const {n}&) = default;",
            f"{c}::{n}({n}&&) noexcept = default;",
            f"{c}& {c}::operator=(const {n}&) = default;",
            f"{c}& {c}::operator=({n}&&) noexcept = default;",
            f"const {c}& {c}::Default() {{",
            f"  static const {n} instance;",
            "  return instance;",
            "}",
            f"const MessageDescriptor& {c}::Descriptor() {{",
            "  static const FieldDescriptor fields[] = {",
        ]
        # Sorted by number, so that files are byte-for-byte equal to those that protobuf writes.
        ordered = sorted(enumerate(message.fields), key=lambda entry: entry[1].number)
        lines += [self.field_row(message, f, index) for index, f in ordered]
        return [
            *lines,
            "  };",
            f'  static const MessageDescriptor descriptor = {{"{message.name}", fields}};',
            "  return descriptor;",
            "}",
            "",
        ]

    def source(self) -> str:
        lines = [
            "// Generated by generate.py from schema.txt.",
            '#include "hearth/caffe/proto/messages.h"',
            "",
            "namespace hearth::caffe {",
            "",
        ]
        lines += self.enum_tables()
        for message in self.messages.values():
            lines += self.definitions(message)
        return "\n".join([*lines, "}  // namespace hearth::caffe", ""])


def write_if_changed(path: Path, text: str) -> None:
    """Leaves an equal file unchanged, since a newer messages.h rebuilds half of the project."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main() -> None:
    schema, output = Path(sys.argv[1]), Path(sys.argv[2])
    generator = Generator(*parse_schema(schema.read_text()))
    output.mkdir(parents=True, exist_ok=True)
    write_if_changed(output / "messages.h", generator.header())
    write_if_changed(output / "messages.cc", generator.source())


if __name__ == "__main__":
    main()
