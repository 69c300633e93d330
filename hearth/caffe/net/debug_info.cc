#include "hearth/caffe/net/debug_info.h"

#include <cmath>
#include <utility>

#include "hearth/base/log.h"

namespace hearth::caffe {
namespace {

// Mean of the absolute values of a tensor, which Caffe's debug lines report (Net::ForwardDebugInfo,
// Net::BackwardDebugInfo).
double MeanMagnitude(const Tensor& values) {
  const Tensor flat = values.reshape({-1});
  const float* const begin = flat.data_ptr();
  double sum = 0;
  for (int64_t i = 0; i < flat.numel(); ++i) sum += std::fabs(begin[i]);
  return flat.numel() == 0 ? 0.0 : sum / static_cast<double>(flat.numel());
}

// A shared parameter is logged by its name, any other by its index in the layer.
std::string ParamName(const LayerParameter& layer, int index) {
  const bool named = index < layer.param_size() && !layer.param(index).name().empty();
  return named ? layer.param(index).name() : std::to_string(index);
}

void LogForward(Net& net, const NetLayer& layer) {
  const std::string& name = layer.layer->name();
  for (size_t i = 0; i < layer.top.size(); ++i) {
    log::Info("    [Forward] Layer {}, top blob {} data: {:g}", name,
              net.blob_names()[layer.top_ids[i]], MeanMagnitude(layer.top[i]->data()));
  }
  for (size_t i = 0; i < layer.layer->blobs().size(); ++i) {
    log::Info("    [Forward] Layer {}, param blob {} data: {:g}", name,
              ParamName(layer.layer->param(), static_cast<int>(i)),
              MeanMagnitude(layer.layer->blobs()[i]->data()));
  }
}

void LogBackward(Net& net, const NetLayer& layer) {
  if (!layer.need_backward) return;
  const std::string& name = layer.layer->name();
  for (size_t i = 0; i < layer.bottom.size(); ++i) {
    if (!layer.bottom_need_backward[i]) continue;
    log::Info("    [Backward] Layer {}, bottom blob {} diff: {:g}", name,
              net.blob_names()[layer.bottom_ids[i]], MeanMagnitude(layer.bottom[i]->diff()));
  }
  for (size_t i = 0; i < layer.layer->blobs().size(); ++i) {
    if (!layer.layer->param_propagate_down(i)) continue;
    log::Info("    [Backward] Layer {}, param blob {} diff: {:g}", name, i,
              MeanMagnitude(layer.layer->blobs()[i]->diff()));
  }
}

void LogAllParams(Net& net) {
  double l1_data = 0, l1_diff = 0, squares_data = 0, squares_diff = 0;
  const auto add = [](const Tensor& values, double* l1, double* squares) {
    const Tensor flat = values.reshape({-1});
    for (const float* value = flat.data_ptr(); value < flat.data_ptr() + flat.numel(); ++value) {
      *l1 += std::fabs(*value);
      *squares += double{*value} * *value;
    }
  };
  for (const LearnableParam& param : net.params().learnable()) {
    add(param.blob->data(), &l1_data, &squares_data);
    add(param.blob->diff(), &l1_diff, &squares_diff);
  }
  log::Info(
      "    [Backward] All net params (data, diff): L1 norm = ({:g}, {:g}); L2 norm = ({:g}, {:g})",
      l1_data, l1_diff, std::sqrt(squares_data), std::sqrt(squares_diff));
}

}  // namespace

void LogDebugInfo(Net& net, std::function<bool()> wanted) {
  net.AddLayerCallback([&net, wanted = std::move(wanted)](Net::LayerEvent event, int index) {
    if (!wanted()) return;
    const NetLayer& layer = net.layers()[static_cast<size_t>(index)];
    if (event == Net::LayerEvent::kAfterForward) LogForward(net, layer);
    if (event == Net::LayerEvent::kAfterBackward) LogBackward(net, layer);
    // Backward ends with layer 0, so all gradients are complete now.
    if (event == Net::LayerEvent::kAfterBackward && index == 0) LogAllParams(net);
  });
}

}  // namespace hearth::caffe
