// hearth.native._core.message_schema: fields of Caffe's file formats, as the engine defines them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <set>
#include <string>

#include "hearth/caffe/proto/messages.h"
#include "module.h"

namespace nb = nanobind;

namespace hearth::bindings {
namespace {

using caffe::EnumDescriptor;
using caffe::FieldDescriptor;
using caffe::FieldType;
using caffe::Message;

const char* TypeName(FieldType type) {
  constexpr const char* kNames[] = {"int32", "int64",  "uint32", "float", "double",
                                    "bool",  "string", "bytes",  "enum",  "message"};
  return kNames[static_cast<size_t>(type)];
}

// Returns the field's default value. `message`, which has the field, is empty.
nb::object DefaultOf(const FieldDescriptor& field, const Message& message) {
  if (field.repeated || field.type == FieldType::kMessage) return nb::none();
  return caffe::VisitScalarType(field.type, [&]<typename T>(std::type_identity<T>) -> nb::object {
    const T& value = field.Singular<T>(message);
    if constexpr (std::is_same_v<T, std::string>) {
      if (field.type == FieldType::kBytes) return nb::bytes(value.data(), value.size());
    }
    return nb::cast(value);
  });
}

class SchemaReader {
 public:
  // Adds the type of `message`, which is empty, and the types of its fields.
  void Add(Message& message) {
    // Skips a known type. This also ends the recursion for types that contain themselves.
    if (!seen_.insert(message.descriptor().name).second) return;
    nb::list fields;
    messages[message.descriptor().name] = fields;
    for (const FieldDescriptor& field : message.descriptor().fields) {
      fields.append(FieldToDict(field, message));
      if (field.type == FieldType::kMessage) Add(field.AddSubmessage(message));
    }
  }

  nb::dict messages, enums;

 private:
  nb::dict FieldToDict(const FieldDescriptor& field, const Message& message) {
    nb::dict facts;
    facts["name"] = field.name;
    facts["number"] = field.number;
    facts["type"] = TypeName(field.type);
    facts["label"] = field.repeated ? "repeated" : field.required ? "required" : "optional";
    facts["packed"] = field.packed;
    facts["default"] = DefaultOf(field, message);
    facts["type_name"] = field.type == FieldType::kMessage ? field.message().name
                         : field.enumeration               ? field.enumeration->name
                                                           : "";
    if (field.enumeration) AddEnum(*field.enumeration);
    return facts;
  }

  void AddEnum(const EnumDescriptor& enumeration) {
    nb::dict values;
    for (const caffe::EnumValue& value : enumeration.values) values[value.name] = value.number;
    enums[enumeration.name] = values;
  }

  std::set<std::string> seen_;
};

nb::dict MessageSchema() {
  SchemaReader reader;
  const auto add = [&reader](auto message) { reader.Add(message); };
  add(caffe::NetParameter());
  add(caffe::SolverParameter());
  add(caffe::SolverState());
  add(caffe::Datum());
  add(caffe::BlobProtoVector());
  nb::dict schema;
  schema["messages"] = reader.messages;
  schema["enums"] = reader.enums;
  return schema;
}

}  // namespace

void RegisterSchema(nb::module_& m) {
  m.def("message_schema", MessageSchema,
        "The file formats as {'messages': {name: [field, ...]}, 'enums': {name: {value: number}}}; "
        "a field is a dict of name, number, type, label, packed, default and type_name. Names of "
        "nested types have dots.");
}

}  // namespace hearth::bindings
