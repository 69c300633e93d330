// Reads event files back: those of EventWriter, and plain scalars of any other program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hearth/board/point.h"

namespace hearth::board {

// What one file says, in its order, without what a restart went back behind. A file that is cut off
// or damaged, as of a training that still runs, is read up to there. Throws where it cannot be read
// at all. `bytes` is the content, `name` for messages.
std::vector<Point> ReadEvents(std::string_view bytes, const std::string& name);

}  // namespace hearth::board
