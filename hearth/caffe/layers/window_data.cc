// WindowData: windows cropped from images, some on objects, the rest on background.
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/for_each.h"
#include "hearth/caffe/data/mean_file.h"
#include "hearth/caffe/data/window_crop.h"
#include "hearth/caffe/layers/file_data.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/image/decode.h"
#include "hearth/image/resize.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

// Crops the image to the window, keeping the channels interleaved. The window's corners are
// inclusive.
image::Image Cut(const image::Image& image, const WindowPlacement& placement) {
  image::Image part{
      placement.y2 - placement.y1 + 1, placement.x2 - placement.x1 + 1, image.channels, {}};
  const int64_t row_bytes = part.width * part.channels;
  for (int64_t y = placement.y1; y <= placement.y2; ++y) {
    const uint8_t* from = &image.pixels[(y * image.width + placement.x1) * image.channels];
    part.pixels.insert(part.pixels.end(), from, from + row_bytes);
  }
  return part;
}

// The data layer of R-CNN (Girshick et al. 2014). Windows are drawn at random, with replacement.
class WindowDataLayer : public FileDataLayer {
 public:
  using FileDataLayer::FileDataLayer;
  ~WindowDataLayer() override { StopLoading(); }

  LayerTraits traits() const override { return {.arity = {0, 0, 2, 2}}; }

  void SetUp(const Blobs&, const Blobs& top) override {
    const WindowDataParameter& data = param_.window_data_param();
    Require(!data.source().empty(), ErrorCode::kInvalidArgument,
            "window_data_param has no source; set it to the list of windows");
    set_batch_size(data.batch_size());
    ReadCrop();
    ReadMean();
    list_ = ReadWindowList(data.source(), data.fg_threshold(), data.bg_threshold());
    for (WindowList::Image& listed : list_.images) {
      listed.path = data.root_folder() + listed.path;
    }
    // The number is computed in float and truncated, as in Caffe.
    foreground_ = static_cast<int64_t>(static_cast<float>(batch_size()) * data.fg_fraction());
    Require(0 <= foreground_ && foreground_ <= batch_size(), ErrorCode::kInvalidArgument,
            "fg_fraction {} is not between 0 and 1", data.fg_fraction());
    RequireWindows(foreground_, list_.foreground, "foreground");
    RequireWindows(batch_size() - foreground_, list_.background, "background");
    top[0]->Reshape({batch_size(), kChannels, crop_.crop_size, crop_.crop_size});
    top[1]->Reshape({batch_size()});
  }

 protected:
  // Random draws depend only on seed, rank and the batch's number, so skipping only counts batches.
  void Skip(int64_t items) override { batches_ += static_cast<uint64_t>(items / batch_size()); }

  // Loads background windows first, then foreground windows, as in Caffe.
  void LoadBatch(DataBatch* batch) override {
    batch->tops.resize(2);
    batch->tops[0].Reshape({batch_size(), kChannels, crop_.crop_size, crop_.crop_size});
    batch->tops[1].Reshape({batch_size()});
    // Padding stays 0, as if its pixels had the value of the mean before the subtraction.
    std::fill(batch->tops[0].values.begin(), batch->tops[0].values.end(), 0.0f);
    const uint64_t batch_seed = MixSeed(MixSeed(seed(), stripe()), batches_++);
    const int64_t count = kChannels * crop_.crop_size * crop_.crop_size;
    ForEach(batch_size(), context().transform_threads, [&](int64_t i) {
      const bool is_foreground = i >= batch_size() - foreground_;
      const auto& windows = is_foreground ? list_.foreground : list_.background;
      // Each window has a separate random stream, so that the batch does not depend on the number
      // of threads.
      Random random(MixSeed(batch_seed, i));
      const ImageWindow& window = windows[random.Below(windows.size())];
      const bool mirror = param_.transform_param().mirror() && random.Below(2) == 1;
      ReadWindow(window, mirror, &batch->tops[0].values[i * count]);
      batch->tops[1].values[i] = static_cast<float>(window.label);
    });
  }

 private:
  static constexpr int64_t kChannels = 3;  // images are read in color

  void ReadCrop() {
    const WindowDataParameter& data = param_.window_data_param();
    crop_ = {param_.transform_param().crop_size(), data.context_pad(),
             data.crop_mode() == "square"};
    Require(crop_.square || data.crop_mode() == "warp", ErrorCode::kInvalidArgument,
            "crop_mode '{}' is not warp or square", data.crop_mode());
    Require(crop_.crop_size > 2 * crop_.context_pad, ErrorCode::kInvalidArgument,
            "crop_size {} must be set and above twice the context_pad {}", crop_.crop_size,
            crop_.context_pad);
  }

  void ReadMean() {
    const TransformationParameter& transform = param_.transform_param();
    mean_values_ = transform.mean_value();
    Require(!transform.has_mean_file() || mean_values_.empty(), ErrorCode::kInvalidArgument,
            "transform_param has both mean_file and mean_value; choose one");
    Require(mean_values_.size() <= 1 || mean_values_.size() == kChannels,
            ErrorCode::kInvalidArgument,
            "transform_param has {} mean_values: set one, or one for each of {} channels",
            mean_values_.size(), kChannels);
    if (mean_values_.empty()) mean_values_.push_back(0);
    mean_values_.resize(kChannels, mean_values_.back());
    if (!transform.has_mean_file()) return;
    mean_ = ReadMeanFile(transform.mean_file());
    Require(mean_.channels == kChannels && mean_.height >= crop_.crop_size &&
                mean_.width >= crop_.crop_size,
            ErrorCode::kInvalidArgument,
            "the mean file {} has {} x {} x {} values, but crops need {} x {} x {} or more",
            transform.mean_file(), mean_.channels, mean_.height, mean_.width, kChannels,
            crop_.crop_size, crop_.crop_size);
  }

  void RequireWindows(int64_t wanted, const std::vector<ImageWindow>& windows,
                      const char* kind) const {
    Require(wanted == 0 || !windows.empty(), ErrorCode::kInvalidArgument,
            "{} has no {} windows; change the thresholds or fg_fraction",
            param_.window_data_param().source(), kind);
  }

  image::Image ReadImage(const WindowList::Image& listed) const {
    try {
      image::Image image = image::DecodeImage(Bytes(listed.path), image::ColorMode::kColor);
      Require(image.height == listed.height && image.width == listed.width, ErrorCode::kDataLoss,
              "the image has {} x {} pixels, but {} x {} in the list", image.height, image.width,
              listed.height, listed.width);
      return image;
    } catch (const Error& error) {
      throw Error(error.code(), listed.path, error);
    }
  }

  std::string Bytes(const std::string& path) const {
    if (!param_.window_data_param().cache_images()) return storage::ReadFile(path);
    // The mutex is also locked while a file is read, so that no two threads read the same file.
    const std::lock_guard lock(cache_mutex_);
    const auto [entry, is_new] = cache_.try_emplace(path);
    if (is_new) entry->second = storage::ReadFile(path);
    return entry->second;
  }

  void ReadWindow(const ImageWindow& window, bool mirror, float* out) const {
    const WindowList::Image& listed = list_.images[window.image];
    const WindowPlacement placement = PlaceWindow(window, listed, crop_, mirror);
    if (placement.width <= 0 || placement.height <= 0) return;  // rounded to an empty window
    const image::Image part =
        image::Resize(Cut(ReadImage(listed), placement), placement.height, placement.width);
    const float scale = param_.transform_param().scale() * param_.window_data_param().scale();
    // The crop is in the centre of the mean image, as in Caffe.
    const int64_t mean_top = (mean_.height - crop_.crop_size) / 2;
    const int64_t mean_left = (mean_.width - crop_.crop_size) / 2;
    for (int64_t c = 0; c < kChannels; ++c) {
      for (int64_t y = 0; y < placement.height; ++y) {
        const int64_t row = placement.top + y;
        for (int64_t x = 0; x < placement.width; ++x) {
          const int64_t column = placement.left + x;
          // Mirrors within the part; PlaceWindow() has already moved the padding to the other side.
          const int64_t from = mirror ? placement.width - 1 - x : x;
          const float mean =
              mean_.empty() ? mean_values_[c] : mean_.Row(c, mean_top + row)[mean_left + column];
          const auto pixel =
              static_cast<float>(part.pixels[(y * placement.width + from) * kChannels + c]);
          out[(c * crop_.crop_size + row) * crop_.crop_size + column] = (pixel - mean) * scale;
        }
      }
    }
  }

  WindowCrop crop_;
  WindowList list_;
  MeanImage mean_;
  std::vector<float> mean_values_;  // one per channel
  int64_t foreground_ = 0;          // windows per minibatch
  uint64_t batches_ = 0;

  mutable std::mutex cache_mutex_;
  mutable std::map<std::string, std::string> cache_;  // contents of the image files, not decoded
};

}  // namespace

void RegisterWindowData(LayerRegistry& registry) { registry.Add<WindowDataLayer>("WindowData"); }

}  // namespace hearth::caffe
