#include "hearth/caffe/tools/convert_imageset.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/for_each.h"
#include "hearth/base/log.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/data/image_list.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/caffe/tensor/random.h"
#include "hearth/caffe/tools/progress_log.h"
#include "hearth/image/decode.h"
#include "hearth/image/encode.h"
#include "hearth/image/resize.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

// Number of images that are read in parallel and then committed together.
constexpr size_t kGroup = 256;

bool IsOfType(std::string_view path, std::string_view type) {
  return path.size() > type.size() && path.ends_with(type) &&
         path[path.size() - type.size() - 1] == '.';
}

// Decoded pixels are in the order H x W x C; a Datum's are C x H x W.
void StorePixels(const image::Image& image, Datum* datum) {
  SetShape(image.channels, image.height, image.width, datum);
  std::string* planes = datum->mutable_data();
  planes->resize(image.pixels.size());
  const auto plane = static_cast<size_t>(image.height * image.width);
  const auto channels = static_cast<size_t>(image.channels);
  for (size_t i = 0; i < plane; ++i) {
    for (size_t c = 0; c < channels; ++c) {
      (*planes)[c * plane + i] = static_cast<char>(image.pixels[i * channels + c]);
    }
  }
}

class Converter {
 public:
  explicit Converter(const ConvertOptions& options) : options_(options) {
    Require((options.height > 0) == (options.width > 0), ErrorCode::kInvalidArgument,
            "resize_height is {} and resize_width is {}; set both, or neither", options.height,
            options.width);
    // Encodes an image of one pixel, to reject an unsupported type before any image is read.
    if (!options.encode_type.empty()) image::EncodeImage({1, 1, 1, {0}}, options.encode_type);
  }

  Datum Read(const ListedImage& listed) const {
    Datum datum;
    datum.set_label(listed.label);
    std::string bytes = storage::ReadFile(options_.root + listed.path);
    const std::string type = EncodingOf(listed.path);
    image::Image image = image::DecodeImage(
        bytes, options_.gray ? image::ColorMode::kGray : image::ColorMode::kColor);
    if (options_.height > 0) image = image::Resize(image, options_.height, options_.width);
    if (type.empty()) {
      StorePixels(image, &datum);
      return datum;
    }
    // A file in the requested format is stored unchanged.
    const bool as_it_is = !options_.gray && options_.height == 0 && IsOfType(listed.path, type);
    datum.set_data(as_it_is ? std::move(bytes) : image::EncodeImage(image, type));
    datum.set_encoded(true);
    return datum;
  }

 private:
  // Returns the type to encode, or "" if pixels are stored.
  std::string EncodingOf(const std::string& path) const {
    if (!options_.encode_type.empty() || !options_.encoded) return options_.encode_type;
    const std::string ending = std::filesystem::path(path).extension().string();
    return ending.empty() ? ending : ending.substr(1);
  }

  const ConvertOptions& options_;
};

// Checks that all images have the size of the first one. Like Caffe, compares the number of stored
// bytes.
void CheckSize(const Datum& datum, const std::string& path, size_t* size) {
  if (*size == 0) *size = datum.data().size();
  Require(datum.data().size() == *size, ErrorCode::kInvalidArgument,
          "{} has {} bytes of pixels, but the images before it have {}; resize them, or leave out "
          "check_size",
          path, datum.data().size(), *size);
}

}  // namespace

int64_t ConvertImageset(const ConvertOptions& options) {
  const Converter converter(options);
  std::vector<ListedImage> images = ReadImageList(options.list);
  if (options.shuffle) {
    log::Info("Shuffling data");
    // The seed is fixed, so the same list always results in the same database.
    std::shuffle(images.begin(), images.end(), Random(1).engine());
  }
  log::Info("A total of {} images.", images.size());
  const auto database = CreateDatabase(options.backend, options.database);
  ProgressLog progress;
  int64_t stored = 0;
  size_t size = 0;
  for (size_t first = 0; first < images.size(); first += kGroup) {
    std::vector<std::optional<Datum>> datums(std::min(kGroup, images.size() - first));
    // Threads read and decode images. The records are written below, in the order of the list.
    ForEach(static_cast<int64_t>(datums.size()), options.threads, [&](int64_t i) {
      const ListedImage& listed = images[first + i];
      try {
        datums[i] = converter.Read(listed);
      } catch (const Error& error) {
        // kInvalidArgument means that the options are wrong, not the image, so the next images
        // would fail, too.
        if (error.code() == ErrorCode::kInvalidArgument) throw;
        log::Warning("Leaving out {}{}: {}", options.root, listed.path, error.message());
      }
    });
    for (size_t i = 0; i < datums.size(); ++i) {
      if (!datums[i]) continue;
      const std::string& path = images[first + i].path;
      if (options.check_size) CheckSize(*datums[i], path, &size);
      // Like Caffe's keys: the position in the list, which keeps records in order, and the path.
      database->Put(fmt::format("{:08}_{}", first + i, path), WireBytes(*datums[i]));
      ++stored;
    }
    database->Commit();
    progress.Done(stored);
  }
  progress.Finish(stored);
  Require(stored > 0, ErrorCode::kInvalidArgument, "none of the {} images of {} can be read",
          images.size(), options.list);
  return stored;
}

}  // namespace hearth::caffe
