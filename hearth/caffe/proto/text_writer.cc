#include "hearth/caffe/proto/text_writer.h"

#include <fmt/format.h>

#include <iterator>

namespace hearth::caffe {
namespace {

std::string Quote(std::string_view bytes) {
  std::string text = "\"";
  for (char c : bytes) {
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\n') {
      text += "\\n";
    } else if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      // Always writes three digits, because a digit after a shorter escape would become part of it.
      fmt::format_to(std::back_inserter(text), "\\{:03o}", static_cast<unsigned char>(c));
    }
  }
  return text + '"';
}

template <typename T>
std::string ValueText(const FieldDescriptor& field, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return Quote(value);
  } else if constexpr (std::is_same_v<T, int32_t>) {
    // An enum value without a known name is written as a number, so a value from a newer Caffe's
    // file is preserved.
    const EnumValue* named = field.enumeration ? field.enumeration->Find(value) : nullptr;
    return named ? named->name : fmt::format("{}", value);
  } else {
    // The shortest text that is parsed back to exactly this float.
    return fmt::format("{}", value);
  }
}

void WriteFields(const Message& message, int indent, std::string* out);

void WriteField(const Message& message, const FieldDescriptor& field, int indent,
                std::string* out) {
  if (field.type == FieldType::kMessage) {
    for (size_t i = 0; i < field.Count(message); ++i) {
      fmt::format_to(std::back_inserter(*out), "{:{}}{} {{\n", "", indent, field.name);
      WriteFields(field.Submessage(message, i), indent + 2, out);
      fmt::format_to(std::back_inserter(*out), "{:{}}}}\n", "", indent);
    }
    return;
  }
  VisitScalarType(field.type, [&]<typename T>(std::type_identity<T>) {
    const auto write = [&](const T& value) {
      fmt::format_to(std::back_inserter(*out), "{:{}}{}: {}\n", "", indent, field.name,
                     ValueText<T>(field, value));
    };
    if (field.repeated) {
      for (const T& value : field.Repeated<T>(message)) write(value);
    } else if (message.Has(field.index)) {
      write(field.Singular<T>(message));
    }
  });
}

void WriteFields(const Message& message, int indent, std::string* out) {
  for (const FieldDescriptor& field : message.descriptor().fields) {
    WriteField(message, field, indent, out);
  }
}

}  // namespace

std::string WriteText(const Message& message) {
  std::string text;
  WriteFields(message, 0, &text);
  return text;
}

}  // namespace hearth::caffe
