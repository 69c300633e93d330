#include "hearth/caffe/data/data_transformer.h"

#include "hearth/base/error.h"

namespace hearth::caffe {

PixelView<uint8_t> ViewOf(const image::Image& image) {
  return {image.pixels.data(),          image.channels, image.height, image.width, 1,
          image.width * image.channels, image.channels};
}

DataTransformer::DataTransformer(const TransformationParameter& param, Phase phase)
    : phase_(phase),
      scale_(param.scale()),
      mirror_(param.mirror()),
      crop_(param.crop_size()),
      force_color_(param.force_color()),
      force_gray_(param.force_gray()),
      mean_values_(param.mean_value()) {
  Require(!(force_color_ && force_gray_), ErrorCode::kInvalidArgument,
          "transform_param has both force_color and force_gray; choose one");
  Require(!param.has_mean_file() || mean_values_.empty(), ErrorCode::kInvalidArgument,
          "transform_param has both mean_file and mean_value; choose one");
  if (param.has_mean_file()) mean_ = ReadMeanFile(param.mean_file());
}

// Returns the forced mode, if any; otherwise gray for 1 channel and color for 3. For other numbers,
// images keep their channels.
image::ColorMode DataTransformer::color_mode(int64_t channels) const {
  if (force_color_ || (!force_gray_ && channels == 3)) return image::ColorMode::kColor;
  if (force_gray_ || channels == 1) return image::ColorMode::kGray;
  return image::ColorMode::kUnchanged;
}

void DataTransformer::RequireFits(int64_t channels, int64_t height, int64_t width) const {
  Require(height >= crop_ && width >= crop_, ErrorCode::kDataLoss,
          "an image of {} x {} pixels is smaller than crop_size {}", height, width, crop_);
  Require(mean_values_.size() <= 1 || static_cast<int64_t>(mean_values_.size()) == channels,
          ErrorCode::kDataLoss, "{} mean_values do not fit an image of {} channels",
          mean_values_.size(), channels);
  // As in Caffe, the mean image has the size of the images before the crop.
  const bool like_mean =
      channels == mean_.channels && height == mean_.height && width == mean_.width;
  Require(mean_.empty() || like_mean, ErrorCode::kDataLoss,
          "an image of {} x {} x {} does not fit the mean file's {} x {} x {}", channels, height,
          width, mean_.channels, mean_.height, mean_.width);
}

DataTransformer::Choice DataTransformer::Centre(int64_t height, int64_t width) const {
  if (crop_ == 0) return {};
  return {(height - crop_) / 2, (width - crop_) / 2, false};
}

DataTransformer::Choice DataTransformer::Choose(int64_t height, int64_t width,
                                                Random& random) const {
  Choice choice = Centre(height, width);
  // The random numbers must be drawn in this order, which determines the result for a seed. As in
  // Caffe, images are mirrored in phase TEST, too.
  if (mirror_) choice.mirror = random.Below(2) == 1;
  if (crop_ > 0 && phase_ == TRAIN) {
    choice.top = static_cast<int64_t>(random.Below(height - crop_ + 1));
    choice.left = static_cast<int64_t>(random.Below(width - crop_ + 1));
  }
  return choice;
}

// out[c, y, x] = (image[c, top + y, left + x] - mean) * scale, in the order channels, rows,
// columns. Mirrored rows are written from right to left.
template <typename T>
void DataTransformer::Run(const PixelView<T>& image, const Choice& choice, float* out) const {
  const int64_t height = OutputSize(image.height), width = OutputSize(image.width);
  for (int64_t c = 0; c < image.channels; ++c) {
    float mean = 0;
    if (!mean_values_.empty()) mean = mean_values_[mean_values_.size() == 1 ? 0 : c];
    for (int64_t y = 0; y < height; ++y, out += width) {
      const int64_t row = choice.top + y;
      const T* from = image.data + c * image.channel_stride + row * image.row_stride +
                      choice.left * image.column_stride;
      const float* mean_row = mean_.empty() ? nullptr : mean_.Row(c, row) + choice.left;
      // The mean is subtracted before the image is mirrored, so the mean's columns stay as they
      // are.
      float* to = choice.mirror ? out + width - 1 : out;
      const int64_t step = choice.mirror ? -1 : 1;
      for (int64_t x = 0; x < width; ++x) {
        const float value = static_cast<float>(from[x * image.column_stride]);
        to[x * step] = (value - (mean_row != nullptr ? mean_row[x] : mean)) * scale_;
      }
    }
  }
}

void DataTransformer::Transform(const PixelView<uint8_t>& image, const Choice& choice,
                                float* out) const {
  Run(image, choice, out);
}

void DataTransformer::Transform(const PixelView<float>& image, const Choice& choice,
                                float* out) const {
  Run(image, choice, out);
}

}  // namespace hearth::caffe
