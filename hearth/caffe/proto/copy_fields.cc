#include "hearth/caffe/proto/copy_fields.h"

namespace hearth::caffe {
namespace {

// Descriptors are compared by address, because each message and enum type has exactly one.
bool SameType(const FieldDescriptor& a, const FieldDescriptor& b) {
  return a.type == b.type && a.repeated == b.repeated && a.enumeration == b.enumeration &&
         (a.type != FieldType::kMessage || &a.message() == &b.message());
}

}  // namespace

void CopyFields(const Message& from, Message* to) {
  for (const FieldDescriptor& field : from.descriptor().fields) {
    if (field.Count(from) == 0) continue;
    const FieldDescriptor* target = to->descriptor().Find(field.name);
    if (target != nullptr && SameType(field, *target)) CopyField(from, field, *target, to);
  }
}

void CopyField(const Message& from, const FieldDescriptor& field, const FieldDescriptor& target,
               Message* to) {
  if (field.type == FieldType::kMessage) {
    for (size_t i = 0; i < field.Count(from); ++i) {
      CopyFields(field.Submessage(from, i), &target.AddSubmessage(*to));
    }
    return;
  }
  VisitScalarType(field.type, [&]<typename T>(std::type_identity<T>) {
    if (!field.repeated) return PutValue(*to, target, field.Singular<T>(from));
    for (const T& value : field.Repeated<T>(from)) PutValue(*to, target, value);
  });
}

}  // namespace hearth::caffe
