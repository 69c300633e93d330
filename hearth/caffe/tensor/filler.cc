#include "hearth/caffe/tensor/filler.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/nearest.h"

namespace hearth::caffe {
namespace {

void FillUniform(float low, float high, Blob& blob, Random& random) {
  Require(low <= high, ErrorCode::kInvalidArgument, "a uniform filler has min {} above max {}", low,
          high);
  std::uniform_real_distribution<float> distribution(low, high);
  std::generate_n(blob.data_ptr(), blob.count(), [&] { return distribution(random.engine()); });
}

void FillNormal(float mean, float std, Blob& blob, Random& random) {
  Require(std >= 0, ErrorCode::kInvalidArgument, "a gaussian filler has the negative std {}", std);
  std::normal_distribution<float> distribution(mean, std);
  std::generate_n(blob.data_ptr(), blob.count(), [&] { return distribution(random.engine()); });
}

// Fills with a normal distribution. filler.sparse() is the expected number of nonzero outputs per
// input. As in Caffe, the first axis is that of the outputs.
void FillGaussian(const FillerParameter& filler, Blob& blob, Random& random) {
  FillNormal(filler.mean(), filler.std(), blob, random);
  if (filler.sparse() < 0) return;
  Require(blob.num_axes() >= 1, ErrorCode::kInvalidArgument,
          "a sparse gaussian filler needs a blob with axes");
  const double keep = std::min(1.0, static_cast<double>(filler.sparse()) /
                                        static_cast<double>(std::max<int64_t>(1, blob.shape(0))));
  std::bernoulli_distribution kept(keep);
  float* data = blob.data_ptr();
  for (int64_t i = 0; i < blob.count(); ++i) {
    if (!kept(random.engine())) data[i] = 0;
  }
}

// Returns the n in the variance of xavier and msra. For weights of outputs x inputs x kernel,
// fan_in is inputs * kernel and fan_out is outputs * kernel. Like Caffe, takes the first two axes
// for outputs and inputs in all blobs, even where they have another meaning (Deconvolution, Embed).
float Fan(const FillerParameter& filler, const Blob& blob) {
  Require(blob.num_axes() >= 1 && blob.count() > 0, ErrorCode::kInvalidArgument,
          "filler '{}' cannot fill a blob of shape {}", filler.type(), blob.ShapeString());
  const auto count = static_cast<float>(blob.count());
  const float fan_in = count / static_cast<float>(blob.shape(0));
  const float fan_out = blob.num_axes() > 1 ? count / static_cast<float>(blob.shape(1)) : count;
  switch (filler.variance_norm()) {
    case FillerParameter::AVERAGE:
      return (fan_in + fan_out) / 2;
    case FillerParameter::FAN_OUT:
      return fan_out;
    default:
      return fan_in;
  }
}

// Fills each row with positive numbers whose sum is 1: uniform random numbers divided by their sum.
void FillPositiveUnitball(Blob& blob, Random& random) {
  FillUniform(0, 1, blob, random);
  Require(blob.num_axes() >= 1 && blob.count() > 0, ErrorCode::kInvalidArgument,
          "filler 'positive_unitball' cannot fill a blob of shape {}", blob.ShapeString());
  const int64_t dim = blob.count(1);
  float* row = blob.data_ptr();
  for (int64_t i = 0; i < blob.shape(0); ++i, row += dim) {
    float sum = 0;
    for (int64_t j = 0; j < dim; ++j) sum += row[j];
    for (int64_t j = 0; j < dim; ++j) row[j] /= sum;
  }
}

// Fills with the kernel of bilinear interpolation, for a Deconvolution that enlarges images. The
// value at (x, y) is (1 - |x / half - centre|) * (1 - |y / half - centre|).
void FillBilinear(Blob& blob) {
  Require(blob.num_axes() == 4 && blob.shape(2) == blob.shape(3), ErrorCode::kInvalidArgument,
          "filler 'bilinear' needs a square kernel, not a blob of shape {}", blob.ShapeString());
  const int64_t width = blob.shape(3);
  const int64_t half = (width + 1) / 2;  // rounded up
  const auto factor = static_cast<float>(half);
  const float centre = static_cast<float>(width - 1) / (2 * factor);
  float* data = blob.data_ptr();
  for (int64_t i = 0; i < blob.count(); ++i) {
    const auto x = static_cast<float>(i % width);
    const auto y = static_cast<float>(i / width % width);
    data[i] = (1 - std::fabs(x / factor - centre)) * (1 - std::fabs(y / factor - centre));
  }
}

}  // namespace

void Fill(const FillerParameter& filler, Blob& blob, Random& random) {
  const std::string& type = filler.type();
  Require(filler.sparse() == -1 || type == "gaussian", ErrorCode::kInvalidArgument,
          "filler '{}' cannot be sparse; only gaussian can", type);
  if (type == "constant") {
    std::fill_n(blob.data_ptr(), blob.count(), filler.value());
  } else if (type == "uniform") {
    FillUniform(filler.min(), filler.max(), blob, random);
  } else if (type == "gaussian") {
    FillGaussian(filler, blob, random);
  } else if (type == "xavier") {
    // Glorot and Bengio 2010. A uniform distribution in (-s, s) has the variance s^2 / 3, which is
    // 1 / n here.
    const float scale = std::sqrt(3.0f / Fan(filler, blob));
    FillUniform(-scale, scale, blob, random);
  } else if (type == "msra") {
    // He et al. 2015. The variance is 2 / n, because ReLU zeroes half of the values.
    FillNormal(0, std::sqrt(2.0f / Fan(filler, blob)), blob, random);
  } else if (type == "positive_unitball") {
    FillPositiveUnitball(blob, random);
  } else if (type == "bilinear") {
    FillBilinear(blob);
  } else {
    Throw(ErrorCode::kInvalidArgument, "unknown filler '{}'{}", type,
          DidYouMean(type, {"constant", "uniform", "gaussian", "xavier", "msra",
                            "positive_unitball", "bilinear"}));
  }
}

std::shared_ptr<Blob> FilledBlob(Shape shape, const FillerParameter& filler, Random& random) {
  auto blob = std::make_shared<Blob>(std::move(shape));
  Fill(filler, *blob, random);
  return blob;
}

}  // namespace hearth::caffe
