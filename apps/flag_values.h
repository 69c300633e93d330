// What the values of flags mean.
#pragma once

#include <optional>
#include <string>

namespace hearth::program {

// As gflags reads switches: 1, t, true, y, yes and 0, f, false, n, no, in any case; else nothing.
std::optional<bool> TruthOf(const std::string& text);

}  // namespace hearth::program
