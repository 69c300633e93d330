// Field numbers of the messages in event files, from TensorFlow's event.proto, summary.proto,
// tensor.proto and node_def.proto.
#pragma once

#include <cstdint>

namespace hearth::tensorboard {

namespace event_fields {
enum : uint32_t { kTime = 1, kStep = 2, kVersion = 3, kGraph = 4, kSummary = 5, kSession = 7 };
}
namespace session_fields {
enum : uint32_t { kStatus = 1, kStart = 1 };
}
namespace value_fields {
enum : uint32_t { kTag = 1, kNumber = 2, kHistogram = 5, kTensor = 8, kMetadata = 9 };
}
namespace histogram_fields {
enum : uint32_t {
  kLeast = 1,
  kMost = 2,
  kCount = 3,
  kSum = 4,
  kSumSquares = 5,
  kLimits = 6,
  kCounts = 7
};
}
namespace tensor_fields {
enum : uint32_t { kType = 1, kShape = 2, kStringValue = 8, kString = 7 };
}
namespace node_fields {
enum : uint32_t { kName = 1, kKind = 2, kInput = 3 };
}

}  // namespace hearth::tensorboard
