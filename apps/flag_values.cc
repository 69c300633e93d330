#include "apps/flag_values.h"

#include <algorithm>
#include <cctype>

namespace hearth::program {

std::optional<bool> TruthOf(const std::string& text) {
  std::string low = text;
  std::transform(low.begin(), low.end(), low.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  for (const char* yes : {"1", "t", "true", "y", "yes"}) {
    if (low == yes) return true;
  }
  for (const char* no : {"0", "f", "false", "n", "no"}) {
    if (low == no) return false;
  }
  return std::nullopt;
}

}  // namespace hearth::program
