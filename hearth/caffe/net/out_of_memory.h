// Telling want of memory from the tensor library's other failures.
#pragma once

#include <c10/util/Exception.h>

#include <cstring>

namespace hearth::caffe {

// The CPU's allocator has no exception of its own for it, only words.
inline bool IsOutOfMemory(const c10::Error& error) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         std::strstr(error.what_without_backtrace(), "can't allocate memory") != nullptr;
}

}  // namespace hearth::caffe
