// Catches errors in tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "hearth/base/error.h"

namespace hearth {

// Returns the Error that the call throws; fails the test if it throws none.
inline Error Thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::kInternal, "nothing was thrown"};
}

// Returns only the code of the Error that the call throws.
inline ErrorCode CodeOf(const std::function<void()>& call) { return Thrown(call).code(); }

}  // namespace hearth
