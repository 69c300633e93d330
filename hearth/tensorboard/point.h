#pragma once

#include <cstdint>
#include <string>

namespace hearth::tensorboard {

// A metric of a training at an iteration, or a text about it.
struct Point {
  double at = 0;  // seconds since 1970
  int64_t step = 0;
  std::string tag = {};
  double value = 0;
  std::string text = {};  // if not empty, the point has no value
};

}  // namespace hearth::tensorboard
