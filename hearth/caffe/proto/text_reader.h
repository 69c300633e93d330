// Reads messages in protobuf's text format (prototxt).
#pragma once

#include <string>
#include <string_view>

#include "hearth/caffe/proto/message.h"

namespace hearth::caffe {

// Adds the fields in `text` to `message`. Throws kInvalidArgument with "file:line:column: found
// ..., expected ...", and with suggestions for a misspelt name.
void ParseText(std::string_view text, const std::string& file, Message* message);

}  // namespace hearth::caffe
