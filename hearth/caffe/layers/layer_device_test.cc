// Checks which layers compute entirely on a device. PyTorch's device "meta" stores shapes but no
// values, so a layer fails if it reads a tensor's values on the host or mixes devices in a call.
#include <gmock/gmock.h>

#include <map>
#include <regex>
#include <string>

#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

// Runs the layer on the meta device and returns its error, or "" if there is none. Errors of ATen
// functions that do not support this device are not the layer's fault and return "", too.
std::string WhyNotOnDevice(LayerCase row) {
  row.device = {{HEARTH_META}, true};
  try {
    LayerRun run(row);
    for (size_t i = 0; i < row.bottoms.size(); ++i) {
      // labels are read on the host
      if (row.bottoms[i].classes == 0) run.bottoms()[i]->device_data();
    }
    run.Forward();
    Arrays diffs;
    for (Blob* top : run.tops()) diffs.emplace_back(top->shape());
    if (row.has_gradient) run.Backward(diffs);
    for (Blob* top : run.tops()) top->device_data();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    const bool unknown = text.find("Meta kernel registered") != std::string::npos ||
                         text.find("convolution_overrideable") != std::string::npos;
    return unknown ? "" : text.substr(0, text.find('\n'));
  }
  return "";
}

TEST(LayersOnDevices, NeedTheHostOnlyInTheseCases) {
  const std::map<std::string, std::string> expected = {
      {"HDF5Output", "all"}, {"Python", "all"}, {"Pooling", "stochastic|outside|beyond"}};
  for (const LayerCase& row : AllLayerCases()) {
    const auto host = expected.find(LayerRun(row).layer().type());
    const bool uses_host =
        host != expected.end() &&
        (host->second == "all" || std::regex_search(row.name, std::regex(host->second)));
    EXPECT_EQ(WhyNotOnDevice(row), uses_host ? "Cannot copy out of meta tensor; no data!" : "")
        << row.name;
  }
}

}  // namespace
}  // namespace hearth::caffe
