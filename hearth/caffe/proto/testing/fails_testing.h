// Test helper for readers: a matcher of errors.
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "hearth/base/error.h"

namespace hearth::caffe {

// Matches a call that throws an Error whose message contains `text`.
inline auto Fails(const std::string& text) {
  return testing::ThrowsMessage<Error>(testing::HasSubstr(text));
}

}  // namespace hearth::caffe
