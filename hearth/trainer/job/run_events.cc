#include "hearth/trainer/job/run_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace hearth::trainer {
namespace {

// Limit of values per output, because curves per class or pixel are of no use.
constexpr int64_t kMaxValues = 32;
constexpr size_t kParts = 30;  // bins of a histogram

}  // namespace

nlohmann::json OutputsOf(caffe::Net& net) {
  nlohmann::json outputs = nlohmann::json::object();
  for (const std::string& name : net.output_names()) {
    caffe::Blob& blob = net.blob(name);
    const float* values = blob.data_ptr();
    outputs[name] = std::vector<float>(values, values + std::min(blob.count(), kMaxValues));
  }
  return outputs;
}

nlohmann::json NetEvent(const caffe::Net& net) {
  nlohmann::json layers = nlohmann::json::array();
  std::map<int, std::string> made_by;  // for each blob, the layer that last wrote it
  for (const caffe::NetLayer& layer : net.layers()) {
    const caffe::LayerParameter& param = layer.layer->param();
    if (param.type() == "Split") {  // inserted by the net: not a producer itself
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

// Needs two passes, because the bins divide the range of the finite values, which is known only
// after the first pass. std::min puts the largest value into the last bin instead of one after it.
// Returns null if no value is finite.
nlohmann::json HistogramEvent(std::string tag, const caffe::Tensor& values, double scale) {
  const float* const begin = values.data_ptr();
  const float* const end = begin + values.numel();
  double least = INFINITY, most = -INFINITY, sum = 0, sum_squares = 0;
  for (const float* value = begin; value < end; ++value) {
    const double x = *value * scale;
    if (!std::isfinite(x)) continue;
    least = std::min(least, x);
    most = std::max(most, x);
    sum += x;
    sum_squares += x * x;
  }
  if (least > most) return nullptr;
  std::vector<int64_t> counts(most > least ? kParts : 1);
  const double last = static_cast<double>(counts.size()) - 1;
  const double parts_per_unit = most > least ? (last + 1) / (most - least) : 0;
  for (const float* value = begin; value < end; ++value) {
    const double x = *value * scale;
    if (std::isfinite(x))
      ++counts[static_cast<size_t>(std::min(last, (x - least) * parts_per_unit))];
  }
  return {{"event", "histogram"}, {"tag", std::move(tag)},      {"least", least},  {"most", most},
          {"sum", sum},           {"sum_squares", sum_squares}, {"counts", counts}};
}

std::vector<nlohmann::json> HistogramEvents(caffe::Net& net, double gradient_weight) {
  std::vector<nlohmann::json> events;
  const auto add = [&events](std::string tag, const caffe::Tensor& values, double scale) {
    auto event = HistogramEvent(std::move(tag), values.contiguous(), scale);
    if (!event.is_null()) events.push_back(std::move(event));
  };
  for (const caffe::NetParam& param : net.params().all()) {
    // A shared parameter is reported once, under its owner.
    if (param.owner >= 0) continue;
    const auto& layer = net.layers()[static_cast<size_t>(param.layer)];
    caffe::Blob& blob = *net.params().learnable()[param.learnable].blob;
    const std::string name = fmt::format("{}/{}", layer.layer->param().name(), param.index);
    add("weights/" + name, blob.data(), 1);
    if (gradient_weight > 0) add("gradients/" + name, blob.diff(), 1 / gradient_weight);
  }
  return events;
}

}  // namespace hearth::trainer
