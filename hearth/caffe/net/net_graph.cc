#include "hearth/caffe/net/net_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_step.h"
#include "hearth/caffe/net/net_backward.h"
#include "hearth/caffe/net/work_threads.h"
#include "hearth/caffe/tensor/blob_proto.h"

namespace hearth::caffe {
namespace {

class GraphBuilder {
 public:
  GraphBuilder(const NetContext& context, const LayerRegistry& registry)
      : context_(context), registry_(registry) {}

  NetGraph Build(const NetParameter& param);

 private:
  void AddLayer(LayerParameter param);
  void ConnectBottom(const LayerParameter& param, int index, NetLayer* layer);
  void ConnectTop(const LayerParameter& param, int index, NetLayer* layer);
  void AddAutomaticTops(NetLayer* layer);
  int AddBlob(const std::string& name);

  const NetContext& context_;
  const LayerRegistry& registry_;
  NetGraph graph_;
  std::vector<int> last_writer_;  // for each blob, the last layer so far that has it as a top
  std::set<std::string> unused_;  // blobs that no layer reads, in the order of Caffe's outputs
};

void CheckCount(const char* what, int count, int least, int most) {
  if (count >= least && count <= most) return;
  const std::string wanted = least == most             ? fmt::format("exactly {}", least)
                             : most == Arity::kNoLimit ? fmt::format("at least {}", least)
                                                       : fmt::format("{} to {}", least, most);
  Throw(ErrorCode::kInvalidArgument, "the layer takes {} {}(s), but the prototxt has {}", wanted,
        what, count);
}

void CheckArity(const NetLayer& connected) {
  const Arity& arity = connected.traits.arity;
  const auto bottoms = static_cast<int>(connected.bottom.size());
  const auto tops = static_cast<int>(connected.top.size());
  CheckCount("bottom", bottoms, arity.min_bottoms, std::max(arity.min_bottoms, arity.max_bottoms));
  CheckCount("top", tops, arity.min_tops, std::max(arity.min_tops, arity.max_tops));
  Require(
      !arity.equal_bottoms_and_tops || bottoms == tops, ErrorCode::kInvalidArgument,
      "the layer needs as many tops as bottoms, but the prototxt has {} top(s) and {} bottom(s)",
      tops, bottoms);
}

// Checks that a layer with an in-place top supports this; otherwise it might read its bottom after
// writing its top.
void CheckInPlace(const NetLayer& connected) {
  if (connected.traits.allows_in_place) return;
  const std::set<const Blob*> bottoms(connected.bottom.begin(), connected.bottom.end());
  for (const Blob* top : connected.top) {
    Require(!bottoms.contains(top), ErrorCode::kInvalidArgument,
            "the layer cannot run in place; give its top another name than its bottom");
  }
}

// Sets the layer's parameters to the values in the prototxt (`blobs`), which must have values for
// all parameters or for none.
void TakeParams(const std::vector<BlobProto>& given, Layer* layer) {
  if (given.empty()) return;
  Require(given.size() == layer->blobs().size(), ErrorCode::kInvalidArgument,
          "blobs is given {} time(s), but the layer has {} parameter(s)", given.size(),
          layer->blobs().size());
  for (size_t i = 0; i < given.size(); ++i) {
    Blob& blob = *layer->blobs()[i];
    Require(HasShapeOf(blob, given[i]), ErrorCode::kInvalidArgument,
            "parameter {} has shape {}, but `blobs` in the prototxt has {}", i, blob.ShapeString(),
            ShapeString(given[i]));
    ReadBlobData(given[i], &blob);
  }
}

// By default, a loss layer's first top has weight 1.
std::vector<float> LossWeights(const LayerParameter& param, bool is_loss, size_t tops) {
  std::vector<float> weights(param.loss_weight());
  if (weights.empty() && is_loss) weights = {1};
  Require(weights.empty() || weights.size() == tops || (is_loss && weights.size() < tops),
          ErrorCode::kInvalidArgument, "loss_weight is given {} time(s) for {} top(s)",
          weights.size(), tops);
  weights.resize(tops, 0);
  return weights;
}

NetGraph GraphBuilder::Build(const NetParameter& param) {
  graph_.name = param.name();
  graph_.force_backward = param.force_backward();
  graph_.layers.reserve(param.layer().size());
  for (const LayerParameter& layer : param.layer()) AddLayer(layer);
  graph_.outputs.assign(unused_.begin(), unused_.end());
  return std::move(graph_);
}

void GraphBuilder::AddLayer(LayerParameter param) {
  if (!param.has_phase()) param.set_phase(context_.phase);
  const std::vector<BlobProto> given = std::move(*param.mutable_blobs());
  // Layers store their LayerParameter, which must not contain a second copy of the weights.
  param.clear_blobs();
  NetContext context = context_;
  context.phase = param.phase();
  NetLayer& connected = graph_.layers.emplace_back();
  connected.layer = registry_.Create(param, context);
  Layer& layer = *connected.layer;
  connected.traits = layer.traits();
  InLayer(layer, "setting up", connected.bottom, [&] {
    Require(param.propagate_down().empty() || param.propagate_down_size() == param.bottom_size(),
            ErrorCode::kInvalidArgument, "propagate_down is given {} time(s) for {} bottom(s)",
            param.propagate_down_size(), param.bottom_size());
    for (int i = 0; i < param.bottom_size(); ++i) ConnectBottom(param, i, &connected);
    for (int i = 0; i < param.top_size(); ++i) ConnectTop(param, i, &connected);
    if (connected.traits.automatic_tops) AddAutomaticTops(&connected);
    CheckArity(connected);
    CheckInPlace(connected);
    connected.loss_weights = LossWeights(param, connected.traits.is_loss, connected.top.size());
    // SetUp needs the connected bottoms and tops. It creates the parameters that TakeParams fills.
    layer.SetUp(connected.bottom, connected.top);
    TakeParams(given, &layer);
    for (const auto& blob : layer.blobs()) blob->set_device(context_.device);
    {
      const WorkThreads threads(connected);
      layer.Reshape(connected.bottom, connected.top);
    }
    Require(param.param().size() <= layer.blobs().size(), ErrorCode::kInvalidArgument,
            "param is given {} time(s), but the layer has {} parameter(s)", param.param_size(),
            layer.blobs().size());
  });
  if (connected.traits.is_net_input) {
    graph_.inputs.insert(graph_.inputs.end(), param.top().begin(), param.top().end());
  }
}

void GraphBuilder::ConnectBottom(const LayerParameter& param, int index, NetLayer* layer) {
  const auto found = graph_.blob_ids.find(param.bottom(index));
  Require(found != graph_.blob_ids.end(), ErrorCode::kInvalidArgument,
          "no earlier layer has the top '{}' for bottom {}", param.bottom(index), index);
  layer->bottom_ids.push_back(found->second);
  layer->bottom.push_back(graph_.blobs[found->second].get());
  unused_.erase(param.bottom(index));
}

void GraphBuilder::ConnectTop(const LayerParameter& param, int index, NetLayer* layer) {
  const std::string& name = param.top(index);
  // As in Caffe, a layer runs in place if top i and bottom i have the same name.
  const bool in_place = index < param.bottom_size() && name == param.bottom(index);
  const auto found = graph_.blob_ids.find(name);
  Require(in_place || found == graph_.blob_ids.end(), ErrorCode::kInvalidArgument,
          "top '{}' is already the top of an earlier layer", name);
  int id = 0;
  if (in_place) {
    id = found->second;
    // Only the blob's last writer is marked here; the earlier ones already are.
    graph_.layers[last_writer_[id]].layer->set_top_overwritten(true);
  } else {
    id = AddBlob(name);
    graph_.blob_ids[name] = id;
  }
  unused_.insert(name);
  last_writer_[id] = static_cast<int>(graph_.layers.size()) - 1;
  layer->top_ids.push_back(id);
  layer->top.push_back(graph_.blobs[id].get());
}

// As with Caffe's AutoTopBlobs, layers such as losses compute a top even if the prototxt names
// none.
void GraphBuilder::AddAutomaticTops(NetLayer* layer) {
  while (static_cast<int>(layer->top.size()) < layer->traits.arity.min_tops) {
    const int id = AddBlob("(automatic)");
    layer->top_ids.push_back(id);
    layer->top.push_back(graph_.blobs[id].get());
  }
}

int GraphBuilder::AddBlob(const std::string& name) {
  graph_.blobs.push_back(std::make_unique<Blob>());
  graph_.blobs.back()->set_device(context_.device);
  graph_.blob_names.push_back(name);
  last_writer_.push_back(static_cast<int>(graph_.layers.size()) - 1);
  return static_cast<int>(graph_.blobs.size()) - 1;
}

}  // namespace

NetGraph BuildNetGraph(const NetParameter& param, const NetContext& context,
                       const LayerRegistry& registry) {
  NetGraph graph = GraphBuilder(context, registry).Build(param);
  PlanBackward(param, &graph);
  return graph;
}

}  // namespace hearth::caffe
