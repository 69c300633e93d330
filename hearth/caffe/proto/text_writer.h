// Writes messages in protobuf's text format (prototxt).
#pragma once

#include <string>

#include "hearth/caffe/proto/message.h"

namespace hearth::caffe {

// Writes the fields that are set, sorted by number, one per line and indented by two spaces.
// ParseText reads an equal message from the text.
std::string WriteText(const Message& message);

}  // namespace hearth::caffe
