#include "hearth/caffe/data/window_list.h"

#include <algorithm>
#include <sstream>

#include "hearth/base/error.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

// Reads Caffe's window files. Their fields, separated by blanks, are "# index", path, channels,
// height, width, number of windows; then for each window label, overlap, x1, y1, x2, y2. Windows
// whose overlap is between the two thresholds are neither foreground nor background and are
// skipped.
struct Reader {
  const std::string& uri;
  std::istringstream text;
  float foreground_from, background_below;
  WindowList list;

  void ReadImage() {
    WindowList::Image image;
    int64_t index = 0, windows = 0;
    // The index is ignored; images are numbered in the order of the file.
    text >> index >> image.path >> image.channels >> image.height >> image.width >> windows;
    const int32_t smallest = std::min({image.channels, image.height, image.width});
    Require(!text.fail() && smallest > 0 && windows >= 0, ErrorCode::kInvalidArgument,
            "{}: entry {} is not '# index, path, channels, height, width, windows'", uri,
            list.images.size());
    list.images.push_back(image);
    for (int64_t i = 0; i < windows; ++i) ReadWindow(i);
  }

  void ReadWindow(int64_t number) {
    const WindowList::Image& image = list.images.back();
    ImageWindow window{.image = list.images.size() - 1};
    float overlap = 0;
    text >> window.label >> overlap >> window.x1 >> window.y1 >> window.x2 >> window.y2;
    const bool inside = 0 <= window.x1 && window.x1 <= window.x2 && window.x2 < image.width &&
                        0 <= window.y1 && window.y1 <= window.y2 && window.y2 < image.height;
    Require(!text.fail() && inside, ErrorCode::kInvalidArgument,
            "{}: window {} of {} is not 'label, overlap, x1, y1, x2, y2' inside {} x {} pixels",
            uri, number, image.path, image.height, image.width);
    if (overlap >= foreground_from) {
      Require(window.label > 0, ErrorCode::kInvalidArgument,
              "{}: window {} of {} overlaps an object but has label {}, which must be above 0", uri,
              number, image.path, window.label);
      list.foreground.push_back(window);
    } else if (overlap < background_below) {
      // Overrides the label that the file gives to a background window.
      window.label = 0;
      list.background.push_back(window);
    }
  }
};

}  // namespace

WindowList ReadWindowList(const std::string& uri, float foreground_from, float background_below) {
  Reader reader{
      uri, std::istringstream(storage::ReadFile(uri)), foreground_from, background_below, {}};
  for (std::string hash; reader.text >> hash;) {
    Require(hash == "#", ErrorCode::kInvalidArgument,
            "{}: found '{}', expected '#' at the beginning of an entry", uri, hash);
    reader.ReadImage();
  }
  Require(!reader.list.images.empty(), ErrorCode::kInvalidArgument, "{} has no images", uri);
  return std::move(reader.list);
}

}  // namespace hearth::caffe
