// Writes messages in protobuf's binary format.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "hearth/caffe/proto/message.h"

namespace hearth::caffe {

// Passes the bytes to `append` in chunks; large arrays are passed without a copy.
void WriteWire(const Message& message, const std::function<void(std::string_view)>& append);
std::string WireBytes(const Message& message);

}  // namespace hearth::caffe
