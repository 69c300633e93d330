#pragma once

#include <cstdint>
#include <string>

namespace hearth::tensorboard {

// A metric of a training run at an iteration, or a text about the run.
struct Point {
  double at = 0;  // seconds since 1970
  int64_t step = 0;
  std::string tag = {};
  double value = 0;
  std::string text = {};  // if not empty, `value` is not used
};

}  // namespace hearth::tensorboard
