#include "hearth/caffe/proto/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace hearth::caffe {
namespace {

constexpr size_t kMaxSuggestions = 3;

char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Case-insensitive Levenshtein distance. Stores one row of the table at a time.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = diagonal + (Lower(a[i - 1]) != Lower(b[j - 1]));
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> NearestNames(std::string_view name,
                                      const std::vector<std::string>& known) {
  // Limits the cost, |name| * |known|, in case of a malicious name.
  name = name.substr(0, 64);
  // Accepts names in which up to a third of the letters differ, or up to two in a short name. Names
  // that differ more are rarely what was meant.
  const size_t limit = std::max<size_t>(2, name.size() / 3);
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(name, candidate);
    if (distance <= limit) near.emplace_back(distance, candidate);
  }
  // A stable sort, so names with equal distances stay in the order of `known`.
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (const auto& [distance, candidate] : near) {
    if (names.size() < kMaxSuggestions) names.push_back(candidate);
  }
  return names;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& known) {
  const std::vector<std::string> names = NearestNames(name, known);
  return names.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(names, " or "));
}

}  // namespace hearth::caffe
