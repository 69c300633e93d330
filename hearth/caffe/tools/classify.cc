#include "hearth/caffe/tools/classify.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <sstream>

#include "hearth/base/error.h"
#include "hearth/caffe/data/mean_file.h"
#include "hearth/caffe/tools/trained_net.h"
#include "hearth/image/decode.h"
#include "hearth/image/resize.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

constexpr size_t kShown = 5;

std::unique_ptr<Net> MakeClassifier(const ClassifyOptions& options) {
  NetContext context;
  context.device = options.device;
  std::unique_ptr<Net> net = TrainedTestNet(options.net, options.weights, context);
  Require(net->input_names().size() == 1 && net->output_names().size() == 1,
          ErrorCode::kInvalidArgument,
          "{} has {} inputs and {} outputs; classification needs one of each", options.net,
          net->input_names().size(), net->output_names().size());
  return net;
}

std::vector<std::string> ReadLabels(const std::string& path) {
  std::vector<std::string> labels;
  std::istringstream stream(storage::ReadFile(path));
  for (std::string line; std::getline(stream, line);) labels.push_back(line);
  return labels;
}

// Like cpp_classification, subtracts the mean of each channel instead of the mean image, because
// the image is resized to the net's input, whose size may differ from the mean image's.
std::vector<float> ChannelMeans(const std::string& path, int64_t channels) {
  const MeanImage mean = ReadMeanFile(path);
  Require(mean.channels == channels, ErrorCode::kInvalidArgument,
          "the mean of {} has {} channels, but the net's input has {}", path, mean.channels,
          channels);
  const auto plane = mean.height * mean.width;
  std::vector<float> means;
  for (auto at = mean.values.begin(); at != mean.values.end(); at += plane) {
    means.push_back(static_cast<float>(std::accumulate(at, at + plane, 0.0) / plane));
  }
  return means;
}

// Copies the resized image to the input, one channel after another, and subtracts the means.
void SetInput(const image::Image& image, const std::vector<float>& means, Blob* input) {
  float* values = input->data_ptr();
  for (int64_t c = 0; c < image.channels; ++c) {
    for (int64_t i = 0; i < image.height * image.width; ++i) {
      *values++ = static_cast<float>(image.pixels[i * image.channels + c]) - means[c];
    }
  }
}

}  // namespace

std::vector<Prediction> Classify(const ClassifyOptions& options) {
  const std::unique_ptr<Net> net = MakeClassifier(options);
  Blob& input = net->blob(net->input_names()[0]);
  Shape shape = input.shape();
  Require(shape.size() == 4 && (shape[1] == 1 || shape[1] == 3), ErrorCode::kInvalidArgument,
          "the input of {} has the shape {}; it must be images of 1 or 3 channels", options.net,
          input.ShapeString());
  // Deploy prototxts often have a batch of 10, for the crops of an image. Here the batch is one
  // image.
  shape[0] = 1;
  input.Reshape(shape);
  net->Reshape();
  const std::vector<float> means = ChannelMeans(options.mean, shape[1]);
  const std::vector<std::string> labels = ReadLabels(options.labels);
  Blob& output = net->blob(net->output_names()[0]);
  const auto classes = static_cast<size_t>(output.count());
  Require(labels.size() == classes, ErrorCode::kInvalidArgument,
          "{} has {} labels, but the net's output '{}' has {} classes", options.labels,
          labels.size(), net->output_names()[0], classes);

  const std::string bytes = storage::ReadFile(options.image);
  image::Image image;
  try {
    // Trained nets expect OpenCV's order of channels, blue first. The decoder uses the same order.
    image = image::DecodeImage(bytes,
                               shape[1] == 1 ? image::ColorMode::kGray : image::ColorMode::kColor);
  } catch (const Error& error) {
    throw Error(error.code(), "cannot decode " + options.image, error);
  }
  SetInput(image::Resize(image, shape[2], shape[3]), means, &input);
  net->Forward();

  const float* values = output.read_data();
  std::vector<size_t> order(classes);
  std::iota(order.begin(), order.end(), 0);
  // A stable sort, so classes with equal scores stay in order and results can be compared.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] > values[b]; });
  order.resize(std::min(kShown, classes));
  std::vector<Prediction> predictions;
  for (const size_t index : order) predictions.push_back({labels[index], values[index]});
  return predictions;
}

}  // namespace hearth::caffe
