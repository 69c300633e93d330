// What the entry functions share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hearth/base/error.h"

namespace hearth::fuzz {

inline std::string_view Text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// An Error is how input is refused, whatever it is; every other exception ends the process.
template <typename Function>
void Refusable(Function function) {
  try {
    function();
  } catch (const Error& error) {
    // One line for a user: an error that cannot be told is a defect too.
    if (error.message().empty()) __builtin_trap();
  }
}

}  // namespace hearth::fuzz
