// Which layers compute on a device from end to end. PyTorch's device "meta" has shapes but no
// values: a layer that asks for the host's copy of what is there fails, and so does a call that
// mixes devices.
#include <gmock/gmock.h>

#include <map>
#include <regex>
#include <string>

#include "hearth/caffe/layers/layer_testing.h"
#include "hearth/caffe/net/tensor_testing.h"

namespace hearth::caffe {
namespace {

// Runs the layer and says why it cannot. Some of ATen's functions do not know that device, which
// says nothing about the layer; all before them are looked at.
std::string WhyNotOnDevice(LayerCase row) {
  row.device = {{HEARTH_META}, true};
  try {
    LayerRun run(row);
    for (size_t i = 0; i < row.bottoms.size(); ++i) {
      if (row.bottoms[i].classes == 0) run.bottoms()[i]->device_data();  // labels are the host's
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

TEST(LayersOnDevices, NeedTheHostInTheseCasesOnly) {
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
