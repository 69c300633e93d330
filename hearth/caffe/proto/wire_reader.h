// Reads messages in protobuf's binary format (.caffemodel, .solverstate, .binaryproto).
#pragma once

#include <string>
#include <string_view>

#include "hearth/caffe/proto/message.h"

namespace hearth::caffe {

// Adds the fields in `bytes` to `message`; unknown fields are skipped, packed and unpacked numbers
// both read. Throws kDataLoss that names `file`, the field and the byte where the damage shows.
void ParseWire(std::string_view bytes, const std::string& file, Message* message);

}  // namespace hearth::caffe
