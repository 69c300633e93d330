// Parsing of flag values.
#pragma once

#include <optional>
#include <string>

namespace hearth::program {

// Parses a switch as gflags does: 1, t, true, y, yes and 0, f, false, n, no, in upper or lower
// case. Returns nullopt for other texts.
std::optional<bool> TruthOf(const std::string& text);

}  // namespace hearth::program
