// Copies between messages of different types that have fields in common.
#pragma once

#include "hearth/caffe/proto/message.h"

namespace hearth::caffe {

// Copies the fields that are set in `from` and exist in `to` with the same name and type, and
// ignores the others. Repeated fields are appended.
void CopyFields(const Message& from, Message* to);

// Copies one field that is set in `from`. `target` is a field of `to` with the same type. A
// singular value may be copied to a repeated field.
void CopyField(const Message& from, const FieldDescriptor& field, const FieldDescriptor& target,
               Message* to);

}  // namespace hearth::caffe
