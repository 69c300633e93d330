// Tells out-of-memory errors from the tensor library's other failures.
#pragma once

#include <c10/util/Exception.h>

#include <cstring>

namespace hearth::caffe {

// The CPU's allocator has no exception type for it, only a text.
inline bool IsOutOfMemory(const c10::Error& error) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         std::strstr(error.what_without_backtrace(), "can't allocate memory") != nullptr;
}

}  // namespace hearth::caffe
