// Reads messages in protobuf's binary format (.caffemodel, .solverstate, .binaryproto).
#pragma once

#include <string>
#include <string_view>

#include "hearth/caffe/proto/message.h"

namespace hearth::caffe {

// Adds the fields in `bytes` to `message`. Skips unknown fields and reads both packed and unpacked
// numbers. Throws kDataLoss that names `file`, the field and the offset of the damage.
void ParseWire(std::string_view bytes, const std::string& file, Message* message);

}  // namespace hearth::caffe
