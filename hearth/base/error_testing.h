// What a call throws, for tests of errors.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "hearth/base/error.h"

namespace hearth {

// The Error that the call throws; a failure of the test where it throws none.
inline Error Thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::kInternal, "nothing was thrown"};
}

// The same, where only the code matters.
inline ErrorCode CodeOf(const std::function<void()>& call) { return Thrown(call).code(); }

}  // namespace hearth
