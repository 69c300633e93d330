// Tools with Caffe's names: hearth convert_imageset, convert_mnist_data,
// convert_mnist_siamese_data, convert_cifar_data, compute_image_mean, extract_features, classify.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "apps/commands.h"
#include "apps/interpreter.h"
#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/data/mean_file.h"
#include "hearth/caffe/tools/classify.h"
#include "hearth/caffe/tools/compute_image_mean.h"
#include "hearth/caffe/tools/convert_cifar.h"
#include "hearth/caffe/tools/convert_imageset.h"
#include "hearth/caffe/tools/convert_mnist.h"
#include "hearth/caffe/tools/extract_features.h"
#include "hearth/trainer/step/compute_devices.h"

namespace hearth::program {
namespace {

int Cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void EnterInterpreterForNet(const std::string& prototxt) {
  trainer::LocalOptions options;
  options.model = prototxt;
  EnterInterpreterFor(options);
}

void AddConvertImageset(CLI::App* app) {
  CLI::App* tool = app->add_subcommand("convert_imageset", "make a database of listed images");
  const auto options = std::make_shared<caffe::ConvertOptions>();
  const auto backend = std::make_shared<std::string>("lmdb");
  tool->add_option("ROOTFOLDER", options->root, "prefix of every path, ending in /")->required();
  tool->add_option("LISTFILE", options->list, "file of lines with a path and a label")->required();
  tool->add_option("DB_NAME", options->database, "database to create")->required();
  tool->add_flag("--gray", options->gray, "store grey images");
  tool->add_flag("--shuffle", options->shuffle, "shuffle the images");
  tool->add_option("--backend", *backend, "lmdb (default) or leveldb");
  tool->add_option("--resize_width", options->width, "width of the stored images");
  tool->add_option("--resize_height", options->height, "height of the stored images");
  tool->add_flag("--check_size", options->check_size, "require images of the same size");
  tool->add_flag("--encoded", options->encoded, "store files instead of pixels");
  tool->add_option("--encode_type", options->encode_type, "jpg or png: format of the stored files");
  tool->callback([options, backend] {
    options->backend = caffe::BackendNamed(*backend);
    options->threads = Cores();
    caffe::ConvertImageset(*options);
  });
}

void AddConvertMnist(CLI::App* app, const char* name, const char* help, const char* kind,
                     int64_t (*convert)(const caffe::MnistOptions&)) {
  CLI::App* tool = app->add_subcommand(name, help);
  const auto options = std::make_shared<caffe::MnistOptions>();
  const auto backend = std::make_shared<std::string>(kind);
  tool->add_option("IMAGES", options->images, "MNIST's file of images, gunzipped")->required();
  tool->add_option("LABELS", options->labels, "MNIST's file of labels")->required();
  tool->add_option("DB_NAME", options->database, "database to create")->required();
  tool->add_option("--backend", *backend, fmt::format("lmdb or leveldb (default {})", kind));
  tool->callback([options, backend, convert] {
    options->backend = caffe::BackendNamed(*backend);
    convert(*options);
  });
}

void AddConvertCifar(CLI::App* app) {
  CLI::App* tool = app->add_subcommand("convert_cifar_data", "make databases of CIFAR-10's files");
  const auto options = std::make_shared<caffe::CifarOptions>();
  const auto backend = std::make_shared<std::string>("lmdb");
  tool->add_option("INPUT_FOLDER", options->input, "folder with data_batch_1.bin to test_batch.bin")
      ->required();
  tool->add_option("OUTPUT_FOLDER", options->output, "folder for the two databases")->required();
  tool->add_option("DB_TYPE", *backend, "lmdb (default) or leveldb");
  tool->callback([options, backend] {
    options->backend = caffe::BackendNamed(*backend);
    caffe::ConvertCifar(*options);
  });
}

void AddClassify(CLI::App* app) {
  CLI::App* tool = app->add_subcommand("classify", "classify an image with a trained net");
  const auto options = std::make_shared<caffe::ClassifyOptions>();
  const auto gpu = std::make_shared<std::string>();
  tool->add_option("DEPLOY", options->net, "the net's prototxt, with one input")->required();
  tool->add_option("WEIGHTS", options->weights, "the trained .caffemodel")->required();
  tool->add_option("MEAN", options->mean, "binaryproto of compute_image_mean")->required();
  tool->add_option("LABELS", options->labels, "a file with a line for each class")->required();
  tool->add_option("IMAGE", options->image, "image file")->required();
  tool->add_option("--gpu", *gpu, "number of the GPU to use");
  tool->callback([options, gpu] {
    if (!gpu->empty()) options->device = trainer::FindDevice(*gpu);
    EnterInterpreterForNet(options->net);
    const auto predictions = caffe::Classify(*options);
    fmt::print("---------- Prediction for {} ----------\n", options->image);
    for (const caffe::Prediction& one : predictions) {
      fmt::print("{:.4f} - \"{}\"\n", one.confidence, one.label);
    }
    std::fflush(stdout);
  });
}

void AddComputeImageMean(CLI::App* app) {
  CLI::App* tool =
      app->add_subcommand("compute_image_mean", "compute the mean image of a database");
  const auto database = std::make_shared<std::string>(), out = std::make_shared<std::string>();
  const auto backend = std::make_shared<std::string>("lmdb");
  tool->add_option("INPUT_DB", *database, "database of images")->required();
  tool->add_option("OUTPUT_FILE", *out, "mean_file to write; by default the mean is logged");
  tool->add_option("--backend", *backend, "lmdb (default) or leveldb");
  tool->callback([=] {
    const caffe::MeanImage mean = caffe::ComputeImageMean(caffe::BackendNamed(*backend), *database);
    if (out->empty()) return;
    log::Info("Write to {}", *out);
    caffe::WriteMeanFile(mean, *out);
  });
}

// Splits "a,b". CLI11's own delimiter is not used because, for positional arguments, it also
// consumes the following arguments.
std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

// Parses "CPU", or "GPU" and an optional number with an optional DEVICE_ID= prefix.
caffe::ComputeDevice DeviceNamed(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "CPU") return {};
  Require(words[0] == "GPU" && words.size() <= 2, ErrorCode::kInvalidArgument,
          "the device '{}' is not CPU or GPU", fmt::join(words, " "));
  constexpr std::string_view kKey = "DEVICE_ID=";
  std::string number = words.size() > 1 ? words[1] : "0";
  if (number.starts_with(kKey)) number.erase(0, kKey.size());
  return trainer::FindDevice(number);
}

void AddExtractFeatures(CLI::App* app) {
  CLI::App* tool = app->add_subcommand("extract_features", "store blobs of a trained net");
  const auto options = std::make_shared<caffe::FeatureOptions>();
  const auto blobs = std::make_shared<std::string>(), databases = std::make_shared<std::string>();
  const auto backend = std::make_shared<std::string>();
  const auto device = std::make_shared<std::vector<std::string>>();
  tool->add_option("WEIGHTS", options->weights, "the trained .caffemodel")->required();
  tool->add_option("NET", options->net, "the net's prototxt, with its data layer")->required();
  tool->add_option("BLOBS", *blobs, "comma-separated names")->required();
  tool->add_option("DATABASES", *databases, "one for each blob, comma-separated")->required();
  tool->add_option("NUM_BATCHES", options->batches, "minibatches to run")->required();
  tool->add_option("DB_TYPE", *backend, "lmdb or leveldb")->required();
  tool->add_option("DEVICE", *device, "CPU (default), or GPU, followed by DEVICE_ID=n (default 0)");
  const auto precision = std::make_shared<std::string>("float32");
  tool->add_option("--precision", *precision,
                   "precision of products: float32 (default), bf16 or int8");
  tool->callback([=] {
    options->device = DeviceNamed(*device);
    options->precision = caffe::ParsePrecision(*precision);
    options->blobs = SplitAtCommas(*blobs);
    options->databases = SplitAtCommas(*databases);
    options->backend = caffe::BackendNamed(*backend);
    options->threads = Cores();
    EnterInterpreterForNet(options->net);
    caffe::ExtractFeatures(*options);
  });
}

}  // namespace

void AddDatasetTools(CLI::App* app) {
  AddConvertImageset(app);
  AddConvertMnist(app, "convert_mnist_data", "make a database of MNIST's files", "lmdb",
                  caffe::ConvertMnist);
  AddConvertMnist(app, "convert_mnist_siamese_data", "make a database of pairs of MNIST's images",
                  "leveldb", caffe::ConvertMnistSiamese);
  AddConvertCifar(app);
  AddComputeImageMean(app);
  AddExtractFeatures(app);
  AddClassify(app);
}

}  // namespace hearth::program
