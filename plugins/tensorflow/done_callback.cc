#include "plugins/tensorflow/done_callback.h"

#include <cstdint>

namespace hearth::tensorflow {
namespace {

// Maximum distance of the nearest callers' frames. Stacks grow down, so callers' frames are at
// higher addresses.
constexpr uintptr_t kNearFrames = 64 << 10;

bool IsInCallersFrames(const void* address) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const auto there = reinterpret_cast<uintptr_t>(address);
  return there > here && there - here < kNearFrames;
}

}  // namespace

DoneCallback::DoneCallback(const Functions& functions, TF_AsyncOpKernelDoneCallback* done)
    : functions_(functions) {
  if (IsInCallersFrames(done)) {
    copy_ = *reinterpret_cast<const std::function<void()>*>(done);
  } else {
    original_ = done;
  }
}

void DoneCallback::operator()() const {
  if (original_ != nullptr) {
    functions_.RunAsyncOpKernelDoneCallback(original_);
  } else {
    copy_();
  }
}

}  // namespace hearth::tensorflow
