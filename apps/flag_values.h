// Parsing of flag values.
#pragma once

#include <optional>
#include <string>

namespace hearth::program {

// Switches as in gflags: 1, t, true, y, yes and 0, f, false, n, no, in any case; else nullopt.
std::optional<bool> TruthOf(const std::string& text);

}  // namespace hearth::program
