#include "hearth/caffe/proto/message.h"

namespace hearth::caffe {
namespace {

// Linear search, which needs no table built at startup. No message has more than 80 fields.
template <typename Range, typename Predicate>
auto FindIf(const Range& range, Predicate matches) -> decltype(&range[0]) {
  for (const auto& entry : range) {
    if (matches(entry)) return &entry;
  }
  return nullptr;
}

}  // namespace

const EnumValue* EnumDescriptor::Find(std::string_view value_name) const {
  return FindIf(values, [&](const EnumValue& value) { return value.name == value_name; });
}

const EnumValue* EnumDescriptor::Find(int32_t number) const {
  return FindIf(values, [&](const EnumValue& value) { return value.number == number; });
}

const FieldDescriptor* MessageDescriptor::Find(std::string_view field_name) const {
  return FindIf(fields, [&](const FieldDescriptor& field) { return field.name == field_name; });
}

const FieldDescriptor* MessageDescriptor::Find(int32_t number) const {
  return FindIf(fields, [&](const FieldDescriptor& field) { return field.number == number; });
}

size_t FieldDescriptor::Count(const Message& m) const {
  if (type == FieldType::kMessage) return access->size(storage(const_cast<Message&>(m)));
  if (!repeated) return m.Has(index);
  return VisitScalarType(type,
                         [&]<typename T>(std::type_identity<T>) { return Repeated<T>(m).size(); });
}

}  // namespace hearth::caffe
