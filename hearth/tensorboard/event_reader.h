// Reads event files: those of EventWriter, and those of other programs if they store scalars as
// simple_value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hearth/tensorboard/point.h"

namespace hearth::tensorboard {

// Returns the points of a file in order, without those that a restart rewound. If the file is
// truncated or damaged, perhaps because the training is still running, returns the points before
// the damage. Throws if it is not an event file. `bytes` is the content; `name` is used in
// messages.
std::vector<Point> ReadEvents(std::string_view bytes, const std::string& name);

}  // namespace hearth::tensorboard
