// Suggestions for misspelt names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth::caffe {

// Up to three names of `known` that are within a small edit distance of `name`, nearest first.
std::vector<std::string> NearestNames(std::string_view name, const std::vector<std::string>& known);

// "; did you mean a or b?", or "" if there is no such name.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& known);

}  // namespace hearth::caffe
