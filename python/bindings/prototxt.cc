// hearth.native._core.parse_prototxt: parses prototxt to Python values, without torch.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/proto/text_reader.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using caffe::FieldDescriptor;
using caffe::FieldType;
using caffe::Message;

nb::dict ToDict(const Message& message);

nb::object EnumName(const FieldDescriptor& field, int32_t number) {
  const caffe::EnumValue* value = field.enumeration->Find(number);
  if (value == nullptr) return nb::int_(number);
  return nb::str(value->name);
}

template <typename T>
nb::object ScalarToPython(const FieldDescriptor& field, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (field.type == FieldType::kBytes) return nb::bytes(value.data(), value.size());
    return nb::str(value.data(), value.size());
  } else {
    if constexpr (std::is_same_v<T, int32_t>) {
      if (field.type == FieldType::kEnum) return EnumName(field, value);
    }
    return nb::cast(value);
  }
}

// Returns the value of a field that is set; a list for a repeated field.
nb::object FieldToPython(const Message& message, const FieldDescriptor& field) {
  if (field.type == FieldType::kMessage) {
    if (!field.repeated) return ToDict(field.Submessage(message, 0));
    nb::list values;
    for (size_t i = 0; i < field.Count(message); ++i) {
      values.append(ToDict(field.Submessage(message, i)));
    }
    return values;
  }
  return caffe::VisitScalarType(field.type, [&]<typename T>(std::type_identity<T>) -> nb::object {
    if (!field.repeated) return ScalarToPython<T>(field, field.Singular<T>(message));
    nb::list values;
    for (const T& value : field.Repeated<T>(message))
      values.append(ScalarToPython<T>(field, value));
    return values;
  });
}

nb::dict ToDict(const Message& message) {
  nb::dict values;
  for (const FieldDescriptor& field : message.descriptor().fields) {
    if (field.Count(message) > 0) values[field.name] = FieldToPython(message, field);
  }
  return values;
}

nb::dict ParsePrototxt(const std::string& text, const std::string& path, const std::string& type) {
  const auto parse = [&](auto message) {
    caffe::ParseText(text, path, &message);
    return ToDict(message);
  };
  if (type == "NetParameter") return parse(caffe::NetParameter());
  if (type == "SolverParameter") return parse(caffe::SolverParameter());
  Throw(ErrorCode::kInvalidArgument,
        "cannot parse prototxt of type '{}': use NetParameter or SolverParameter", type);
}

}  // namespace

void RegisterPrototxt(nb::module_& m) {
  m.def("parse_prototxt", ParsePrototxt, "text"_a, "path"_a, "message"_a,
        "Parses `text` to a dict of its fields: enums by name, repeated fields as lists, messages "
        "as dicts. `message`: NetParameter or SolverParameter. Raises ValueError as "
        "'path:line:column: what was found, what was expected'.");
}

}  // namespace hearth::bindings
