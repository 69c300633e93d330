// Exchanges a text between the ranks of a connected group.
#pragma once

#include <string>
#include <vector>

#include "hearth/base/deadline.h"

namespace hearth::collective {

class Group;

// Returns the texts of all ranks, in rank order. Collective; throws as Group::Run does.
std::vector<std::string> GatherTexts(Group& group, const std::string& text, Deadline deadline);

}  // namespace hearth::collective
