// Helpers for the entry functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hearth/base/error.h"

namespace hearth::fuzz {

inline std::string_view Text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Calls `function`, which must throw Error for invalid input: any other exception ends the process.
template <typename Function>
void Refusable(Function function) {
  try {
    function();
  } catch (const Error& error) {
    // An error without a message is a defect, too.
    if (error.message().empty()) __builtin_trap();
  }
}

}  // namespace hearth::fuzz
