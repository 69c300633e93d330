// What ranks that are connected tell each other of themselves.
#pragma once

#include <string>
#include <vector>

#include "hearth/base/deadline.h"

namespace hearth::collective {

class Group;

// The texts of all ranks, in their order. All call it together; throws as Group::Run.
std::vector<std::string> GatherTexts(Group& group, const std::string& text, Deadline deadline);

}  // namespace hearth::collective
