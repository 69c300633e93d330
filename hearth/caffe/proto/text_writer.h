// Writes messages in protobuf's text format (prototxt).
#pragma once

#include <string>

#include "hearth/caffe/proto/message.h"

namespace hearth::caffe {

// Writes the fields that are present, by number, one per line, indented by two spaces. ParseText
// returns an equal message.
std::string WriteText(const Message& message);

}  // namespace hearth::caffe
