#include "hearth/caffe/data/image_list.h"

#include <charconv>
#include <sstream>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

constexpr const char* kBlanks = " \t\r";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

std::vector<ListedImage> ReadImageList(const std::string& uri) {
  std::istringstream text(storage::ReadFile(uri));
  std::vector<ListedImage> images;
  std::string whole;
  for (int number = 1; std::getline(text, whole); ++number) {
    const std::string_view line = Trim(whole);
    if (line.empty()) continue;
    // The label is the text after the last blank because, as in Caffe, a path may contain blanks.
    const size_t gap = line.find_last_of(kBlanks);
    ListedImage image;
    const char* const end = line.data() + line.size();
    const char* const label = gap == std::string_view::npos ? end : line.data() + gap + 1;
    // Requires the whole text to be a number; Caffe's atoi reads any other text as 0.
    const auto [stop, error] = std::from_chars(label, end, image.label);
    Require(error == std::errc() && stop == end, ErrorCode::kInvalidArgument,
            "{}:{}: '{}' does not end in an integer label", uri, number, line);
    image.path = Trim(line.substr(0, gap));
    images.push_back(std::move(image));
  }
  Require(!images.empty(), ErrorCode::kInvalidArgument, "the list {} has no images", uri);
  return images;
}

std::vector<std::string> ReadLines(const std::string& uri) {
  std::istringstream text(storage::ReadFile(uri));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    const std::string_view words = Trim(line);
    if (!words.empty()) lines.emplace_back(words);
  }
  return lines;
}

}  // namespace hearth::caffe
