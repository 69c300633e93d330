#include "hearth/trainer/run_events.h"

#include <algorithm>
#include <map>

namespace hearth::trainer {
namespace {

// Of each output: nobody follows a curve per class or pixel.
constexpr int64_t kMostValues = 32;

}  // namespace

nlohmann::json OutputsOf(caffe::Net& net) {
  nlohmann::json outputs = nlohmann::json::object();
  for (const std::string& name : net.output_names()) {
    caffe::Blob& blob = net.blob(name);
    const float* values = blob.data_ptr();
    outputs[name] = std::vector<float>(values, values + std::min(blob.count(), kMostValues));
  }
  return outputs;
}

nlohmann::json NetEvent(const caffe::Net& net) {
  nlohmann::json layers = nlohmann::json::array();
  std::map<int, std::string> made_by;  // the layer that wrote a blob last
  for (const caffe::NetLayer& layer : net.layers()) {
    const caffe::LayerParameter& param = layer.layer->param();
    if (param.type() == "Split") {  // the net's own: nobody wrote it
      for (const int blob : layer.top_ids) made_by[blob] = made_by[layer.bottom_ids.front()];
      continue;
    }
    nlohmann::json inputs = nlohmann::json::array();
    for (const int blob : layer.bottom_ids) inputs.push_back(made_by[blob]);
    layers.push_back({{"name", param.name()}, {"type", param.type()}, {"inputs", inputs}});
    for (const int blob : layer.top_ids) made_by[blob] = param.name();
  }
  return {{"event", "net"}, {"name", net.name()}, {"layers", layers}};
}

nlohmann::json TestEvent(size_t index, int64_t iteration, caffe::Net& net,
                         const std::vector<double>& means) {
  nlohmann::json outputs = nlohmann::json::object();
  auto next = means.begin();
  for (const std::string& name : net.output_names()) {
    const auto count = std::min<int64_t>(net.blob(name).count(), means.end() - next);
    outputs[name] = std::vector<double>(next, next + count);
    next += count;
  }
  return {{"event", "validation"}, {"iteration", iteration}, {"net", index}, {"outputs", outputs}};
}

}  // namespace hearth::trainer
