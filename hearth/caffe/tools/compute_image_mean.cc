#include "hearth/caffe/tools/compute_image_mean.h"

#include <numeric>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/data/pixels.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "hearth/caffe/tools/progress_log.h"

namespace hearth::caffe {
namespace {

// The sum of images. They must have the same size, because means are computed per channel and
// pixel.
class Sum {
 public:
  void Add(const Pixels& pixels) {
    const ImageSize size = pixels.size();
    if (count_ == 0) {
      size_ = size;
      sum_.resize(size.count());
      values_.resize(size.count());
    }
    Require(size == size_, ErrorCode::kDataLoss,
            "the image has {} x {} x {} values, but the first image has {} x {} x {}",
            size.channels, size.height, size.width, size_.channels, size_.height, size_.width);
    // A transformation without settings only decodes the image and converts its bytes to floats.
    pixels.Transform(plain_, 0, values_.data());
    for (size_t i = 0; i < sum_.size(); ++i) sum_[i] += values_[i];
    ++count_;
  }

  int64_t count() const { return count_; }

  MeanImage Mean() const {
    MeanImage mean{size_.channels, size_.height, size_.width, {}};
    for (const double sum : sum_) {
      mean.values.push_back(static_cast<float>(sum / static_cast<double>(count_)));
    }
    return mean;
  }

 private:
  const DataTransformer plain_{TransformationParameter(), TEST};
  ImageSize size_;
  // double, because in floats small values would be lost after a million images
  std::vector<double> sum_;
  std::vector<float> values_;
  int64_t count_ = 0;
};

void LogChannels(const MeanImage& mean) {
  log::Info("Number of channels: {}", mean.channels);
  const auto plane = static_cast<std::ptrdiff_t>(mean.height * mean.width);
  for (int64_t c = 0; c < mean.channels; ++c) {
    const auto first = mean.values.begin() + c * plane;
    log::Info("mean_value channel [{}]: {}", c,
              std::accumulate(first, first + plane, 0.0) / static_cast<double>(plane));
  }
}

}  // namespace

MeanImage ComputeImageMean(DataParameter::DB backend, const std::string& database) {
  const auto cursor = OpenDatabase(backend, database);
  Require(cursor->valid(), ErrorCode::kInvalidArgument, "the database {} is empty", database);
  log::Info("Starting iteration");
  ProgressLog progress;
  Sum sum;
  for (; cursor->valid(); cursor->Next()) {
    try {
      Datum datum;
      ParseWire(cursor->value(), "its Datum", &datum);
      sum.Add(Pixels(std::move(datum), image::ColorMode::kUnchanged));
    } catch (const Error& error) {
      // The key allows the user to find the record in the database.
      throw Error(error.code(), fmt::format("record '{}' of {}", cursor->key(), database), error);
    }
    progress.Done(sum.count());
  }
  progress.Finish(sum.count());
  MeanImage mean = sum.Mean();
  LogChannels(mean);
  return mean;
}

}  // namespace hearth::caffe
