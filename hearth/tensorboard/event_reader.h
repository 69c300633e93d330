// Reads event files: those of EventWriter, and plain scalars of other programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hearth/tensorboard/point.h"

namespace hearth::tensorboard {

// The points of a file in order, without those that a restart rewound. A truncated or damaged file,
// such as that of a running training, is read up to the damage. Throws if it is not an event file.
// `bytes` is the content, `name` is for messages.
std::vector<Point> ReadEvents(std::string_view bytes, const std::string& name);

}  // namespace hearth::tensorboard
