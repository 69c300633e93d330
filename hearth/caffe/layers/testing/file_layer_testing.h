// For tests of the layers that read files: a temporary folder, and one layer outside of a net.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/proto/text_reader.h"

namespace hearth::caffe {

// Test fixture with a temporary folder.
class FileLayerTest : public testing::Test {
 protected:
  FileLayerTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~FileLayerTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + name; }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }

 private:
  const std::string folder_ = TestFolder() + "file_layer_test/";
};

inline NetContext FileContext(Phase phase, int rank = 0, int ranks = 1) {
  NetContext context;
  context.phase = phase;
  context.rank = rank;
  context.ranks = ranks;
  context.seed = 5;
  return context;
}

// Runs one layer outside of a net.
class FileLayerRun {
 public:
  explicit FileLayerRun(const std::string& text, const NetContext& context = FileContext(TEST),
                        int tops = 2) {
    LayerParameter param;
    ParseText("name: 'd' " + text, "layer", &param);
    layer_ = LayerRegistry::Default().Create(param, context);
    for (int i = 0; i < tops; ++i) {
      blobs_.push_back(std::make_unique<Blob>());
      tops_.push_back(blobs_.back().get());
    }
    layer_->SetUp({}, tops_);
  }

  Layer& layer() { return *layer_; }
  const Shape& shape(int top) const { return tops_[top]->shape(); }
  // Runs Forward once and returns the values of a top.
  std::vector<float> Next(int top) {
    layer_->Reshape({}, tops_);
    layer_->Forward({}, tops_);
    return Values(top);
  }
  std::vector<float> Values(int top) const {
    const float* values = tops_[top]->data_ptr();
    return {values, values + tops_[top]->count()};
  }
  // Runs Forward several times and returns all values of a top.
  std::vector<float> Next(int top, int times) {
    std::vector<float> all;
    for (int i = 0; i < times; ++i) {
      for (const float value : Next(top)) all.push_back(value);
    }
    return all;
  }

 private:
  std::unique_ptr<Layer> layer_;
  std::vector<std::unique_ptr<Blob>> blobs_;
  Blobs tops_;
};

}  // namespace hearth::caffe
