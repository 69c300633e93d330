// Copies between messages of different types that have fields in common.
#pragma once

#include "hearth/caffe/proto/message.h"

namespace hearth::caffe {

// Copies the fields that are present in `from` and that `to` has under the same name with the same
// type; others are left out. Repeated fields are appended.
void CopyFields(const Message& from, Message* to);

// Copies one field that is present; `target` is `to`'s, of the same type. A singular value may go
// to a repeated field.
void CopyField(const Message& from, const FieldDescriptor& field, const FieldDescriptor& target,
               Message* to);

}  // namespace hearth::caffe
