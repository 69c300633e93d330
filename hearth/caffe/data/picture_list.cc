#include "hearth/caffe/data/picture_list.h"

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

std::vector<ListedPicture> ReadPictureList(const std::string& uri) {
  std::istringstream text(storage::ReadFile(uri));
  std::vector<ListedPicture> pictures;
  std::string whole;
  for (int number = 1; std::getline(text, whole); ++number) {
    const std::string_view line = Trim(whole);
    if (line.empty()) continue;
    const size_t gap = line.find_last_of(kBlanks);
    ListedPicture picture;
    const char* const end = line.data() + line.size();
    const char* const label = gap == std::string_view::npos ? end : line.data() + gap + 1;
    const auto [stop, error] = std::from_chars(label, end, picture.label);
    Require(error == std::errc() && stop == end, ErrorCode::kInvalidArgument,
            "{}:{}: '{}' does not end in an integer label", uri, number, line);
    picture.path = Trim(line.substr(0, gap));
    pictures.push_back(std::move(picture));
  }
  Require(!pictures.empty(), ErrorCode::kInvalidArgument, "the list {} has no images", uri);
  return pictures;
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
