#include "hearth/caffe/net/net.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/net/debug_info.h"
#include "hearth/caffe/net/join_normalization.h"
#include "hearth/caffe/net/layer_error.h"
#include "hearth/caffe/net/layer_step.h"
#include "hearth/caffe/net/net_filter.h"
#include "hearth/caffe/net/net_layout.h"
#include "hearth/caffe/net/net_splits.h"
#include "hearth/caffe/net/relu_gates.h"
#include "hearth/caffe/net/work_threads.h"
#include "hearth/caffe/proto/nearest.h"

namespace hearth::caffe {
namespace {

// Applies the include and exclude rules before it inserts Splits: an excluded layer reads no blob
// and needs no Split.
NetParameter Prepare(const NetParameter& param, Phase phase) {
  NetParameter with_state = param;
  with_state.mutable_state()->set_phase(phase);
  return InsertSplits(FilterNet(with_state));
}

// Returns true if no layer reads a loss. Then no layer overwrites a loss in place, and all losses
// still exist after the last layer.
bool KeepsLosses(const NetGraph& graph) {
  std::set<int> read;
  for (const NetLayer& layer : graph.layers) {
    read.insert(layer.bottom_ids.begin(), layer.bottom_ids.end());
  }
  for (const NetLayer& layer : graph.layers) {
    for (size_t i = 0; i < layer.top.size(); ++i) {
      if (layer.loss_weights[i] != 0 && read.count(layer.top_ids[i]) > 0) return false;
    }
  }
  return true;
}

void RequireSupported(const NetContext& context, const NetParameter& param) {
  if (context.precision != Precision::kInt8) return;
  Require(context.phase == TEST, ErrorCode::kInvalidArgument,
          "precision int8 is for tests and features of trained nets, but net '{}' is to be "
          "trained: use float32 or bf16",
          param.name());
  Require(!context.device.separate, ErrorCode::kUnimplemented,
          "precision int8 is for CPUs, but net '{}' is to compute on a GPU: use bf16",
          param.name());
}

int64_t FedBatchSize(const LayerParameter& param) {
  if (param.has_cos_data_param()) return param.cos_data_param().batch_size();
  return param.memory_data_param().batch_size();
}

}  // namespace

Net::Net(const NetParameter& param, const NetContext& given, const LayerRegistry& registry)
    : phase_(given.phase),
      graph_([&] {
        RequireSupported(given, param);
        NetContext context = given;
        if (!context.random) context.random = std::make_shared<Random>(std::random_device{}());
        return BuildNetGraph(Prepare(param, context.phase), context, registry);
      }()),
      params_(graph_, given.device) {
  for (const NetLayer& layer : graph_.layers) {
    if (batch_size_ == 0) batch_size_ = FedBatchSize(layer.layer->param());
  }
  FindGradientOrder();
  // Reading a value from a device waits for all of the device's work. So that the device never
  // idles between layers, losses are read after the last layer if they still exist then.
  reads_loss_last_ = given.device.separate && KeepsLosses(graph_);
  if (!given.device.separate) {
    PlanMemory(given, param.debug_info());
  } else if (given.share_diffs && !param.debug_info()) {
    JoinNormalizations(graph_);
  }
  if (param.debug_info()) LogDebugInfo(*this, [] { return true; });
}

Net::~Net() = default;

void Net::PlanMemory(const NetContext& context, bool debug_info) {
  PlanLayouts(graph_);
  // The debug lines report the diffs of every layer, so diffs must not share memory if debug_info
  // is set.
  if (context.share_diffs && !debug_info) {
    short_lived_ = MoveReluGates(graph_);
    diff_plan_ = ShareDiffs(graph_, short_lived_);
  }
  if (context.share_data) data_plan_ = ShareData(graph_, context.kept_blobs);
}

// Checks that all data layers read the same number of rows. Their rows correspond by position, so
// otherwise rows would be paired with the labels of other rows.
std::optional<int64_t> Net::Fetch() {
  std::optional<int64_t> rows;
  for (NetLayer& layer : graph_.layers) {
    const auto fetched =
        InLayer(*layer.layer, "fetching rows", layer.bottom, [&] { return layer.layer->Fetch(); });
    RequireInLayer(layer.layer->name(), !fetched || !rows || *fetched == *rows,
                   ErrorCode::kInvalidArgument,
                   "layer '{}' got {} rows, but an earlier data layer got {}; give them the same "
                   "batch_size and the same rows",
                   layer.layer->name(), fetched.value_or(0), rows.value_or(0));
    if (fetched) rows = fetched;
  }
  return rows;
}

void Net::NextEpoch() {
  for (NetLayer& layer : graph_.layers) layer.layer->NextEpoch();
}

float Net::Forward(int from, int to) {
  StartForward(from, to);
  return FinishForward(from, to);
}

void Net::StartForward(int from, int to) {
  Require(0 <= from && to <= last_layer(), ErrorCode::kInvalidArgument,
          "cannot run layers {} to {} of a net that has {}", from, to, graph_.layers.size());
  loss_ = 0;
  for (int i = from; i <= to; ++i) {
    NetLayer& layer = graph_.layers[i];
    Notify(LayerEvent::kBeforeForward, i);
    InLayer(*layer.layer, "forward", layer.bottom, [&] {
      const WorkThreads threads(layer);
      // Reshapes every time, because the last minibatch of an epoch may be smaller. Unchanged
      // shapes cost little.
      layer.layer->Reshape(layer.bottom, layer.top);
      layer.layer->Forward(layer.bottom, layer.top);
      SetLossGradient(layer);
      if (!reads_loss_last_) loss_ += LossOf(layer);
    });
    Notify(LayerEvent::kAfterForward, i);
  }
}

// Initializes the diffs of the layer's loss tops, with which Backward starts.
void Net::SetLossGradient(NetLayer& layer) {
  if (!layer.need_backward) return;
  for (size_t i = 0; i < layer.top.size(); ++i) {
    const float weight = layer.loss_weights[i];
    Blob& top = *layer.top[i];
    if (weight != 0) std::fill_n(top.diff_ptr(), top.count(), weight * loss_scale_);
  }
}

// The sum over the tops of loss_weight times the sum of the top's values. The loss scale is not
// applied, since it is for gradients only.
float Net::LossOf(const NetLayer& layer) {
  float loss = 0;
  for (size_t i = 0; i < layer.top.size(); ++i) {
    const float weight = layer.loss_weights[i];
    if (weight == 0) continue;
    Blob& top = *layer.top[i];
    loss += weight * std::accumulate(top.read_data(), top.read_data() + top.count(), 0.f);
  }
  return loss;
}

float Net::FinishForward(int from, int to) {
  if (!reads_loss_last_) return loss_;
  float loss = 0;
  for (int i = from; i <= to; ++i) {
    NetLayer& layer = graph_.layers[i];
    InLayer(*layer.layer, "forward", layer.bottom, [&] { loss += LossOf(layer); });
  }
  return loss;
}

void Net::Backward(int from, int to) {
  Require(from <= last_layer() && 0 <= to, ErrorCode::kInvalidArgument,
          "cannot run layers {} down to {} of a net that has {}", from, to, graph_.layers.size());
  if (on_gradient_ready_ && from == last_layer()) {
    // Other ranks wait for the gradients in a fixed order, so gradients that no layer writes are
    // reported first.
    for (size_t index : gradients_never_written_) on_gradient_ready_(index);
  }
  for (int i = from; i >= to; --i) {
    NetLayer& layer = graph_.layers[i];
    Notify(LayerEvent::kBeforeBackward, i);
    if (layer.need_backward) {
      InLayer(*layer.layer, "backward", layer.bottom, [&] {
        const WorkThreads threads(layer);
        layer.layer->Backward(layer.top, layer.bottom_need_backward, layer.bottom);
      });
    }
    Notify(LayerEvent::kAfterBackward, i);
    if (!on_gradient_ready_) continue;
    for (size_t index : gradients_final_after_[i]) on_gradient_ready_(index);
  }
}

// The gradient of a shared parameter is complete only after Backward of the lowest layer that uses
// it.
void Net::FindGradientOrder() {
  gradients_final_after_.resize(graph_.layers.size());
  constexpr int kNever = std::numeric_limits<int>::max();
  std::vector<int> lowest(params_.learnable().size(), kNever);
  for (const NetParam& param : params_.all()) {
    const NetLayer& layer = graph_.layers[param.layer];
    if (!layer.need_backward || !layer.layer->param_propagate_down(param.index)) continue;
    lowest[param.learnable] = std::min(lowest[param.learnable], param.layer);
  }
  // The net's last parameters come first, which is the order of Backward.
  for (size_t i = lowest.size(); i-- > 0;) {
    (lowest[i] == kNever ? gradients_never_written_ : gradients_final_after_[lowest[i]])
        .push_back(i);
  }
}

void Net::Reshape() {
  for (NetLayer& layer : graph_.layers) {
    InLayer(*layer.layer, "reshaping", layer.bottom, [&] {
      const WorkThreads threads(layer);
      layer.layer->Reshape(layer.bottom, layer.top);
    });
  }
}

int Net::layer_index(const std::string& name) const {
  std::vector<std::string> known;
  for (size_t i = 0; i < graph_.layers.size(); ++i) {
    known.push_back(graph_.layers[i].layer->name());
    if (known.back() == name) return static_cast<int>(i);
  }
  Throw(ErrorCode::kNotFound, "net '{}' has no layer '{}'{}", this->name(), name,
        DidYouMean(name, known));
}

Layer& Net::layer(const std::string& name) { return *graph_.layers[layer_index(name)].layer; }

Blob& Net::blob(const std::string& name) {
  const auto found = graph_.blob_ids.find(name);
  if (found == graph_.blob_ids.end()) {
    Throw(ErrorCode::kNotFound, "net '{}' has no blob '{}'{}", this->name(), name,
          DidYouMean(name, graph_.blob_names));
  }
  return *graph_.blobs[found->second];
}

float Net::loss_weight(const std::string& blob_name) const {
  float weight = 0;
  for (const NetLayer& layer : graph_.layers) {
    for (size_t i = 0; i < layer.top.size(); ++i) {
      if (graph_.blob_names[layer.top_ids[i]] == blob_name) weight = layer.loss_weights[i];
    }
  }
  return weight;
}

}  // namespace hearth::caffe
