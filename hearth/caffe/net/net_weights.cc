// The part of Net that copies weights between nets and files.
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/net/layer_error.h"
#include "hearth/caffe/net/net.h"
#include "hearth/caffe/tensor/blob_proto.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

using ParamBlobs = std::vector<std::shared_ptr<Blob>>;

void RequireSameBlobCount(const std::string& layer, size_t mine, size_t theirs) {
  RequireInLayer(layer, mine == theirs, ErrorCode::kInvalidArgument,
                 "layer '{}' has {} parameter(s), but the trained layer of that name has {}; "
                 "rename the layer to learn it from scratch",
                 layer, mine, theirs);
}

// Finds the layers of a net by name. If several have the same name, finds the first one.
class LayersByName {
 public:
  explicit LayersByName(const std::vector<NetLayer>& layers) {
    for (const NetLayer& layer : layers) layers_.emplace(layer.layer->name(), &layer);
  }

  // Returns null if there is no such layer.
  const NetLayer* Find(const std::string& name) const {
    const auto found = layers_.find(name);
    return found == layers_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string_view, const NetLayer*> layers_;
};

// HDF5 models store a shared parameter only for its owner. The other layers then share the owner's
// values.
bool IsLeftOut(const BlobProto& proto) { return ShapeOf(proto).empty() && proto.data().empty(); }

bool SharesParam(const NetLayer& layer, size_t i) {
  const std::vector<ParamSpec>& params = layer.layer->param().param();
  return i < params.size() && !params[i].name().empty();
}

// The number of parameters in `source`, including shared ones that the file omits at the end.
size_t CountWithShared(const LayerParameter& source, const NetLayer& target) {
  size_t count = source.blobs().size();
  while (count < target.layer->blobs().size() && SharesParam(target, count)) ++count;
  return count;
}

// If no layer name matches, the file belongs to another net.
void RequireCommonLayer(const NetParameter& trained, const std::vector<NetLayer>& layers,
                        const LayersByName& by_name) {
  std::vector<std::string> theirs, ours;
  for (const LayerParameter& layer : trained.layer()) {
    if (!layer.blobs().empty()) theirs.push_back(layer.name());
  }
  for (const NetLayer& layer : layers) {
    if (!layer.layer->blobs().empty()) ours.push_back(layer.layer->name());
  }
  const bool common = std::any_of(theirs.begin(), theirs.end(), [&](const std::string& name) {
    return by_name.Find(name) != nullptr;
  });
  Require(common || theirs.empty() || ours.empty(), ErrorCode::kInvalidArgument,
          "the weights are of another net: they are for layers {}, but this net has {}; give the "
          "right file, or rename layers",
          fmt::join(theirs, ", "), fmt::join(ours, ", "));
}

}  // namespace

// Layers are matched by name, as in Caffe. To train a layer from scratch, rename it.
void Net::CopyTrainedLayersFrom(const NetParameter& trained) {
  const LayersByName by_name(graph_.layers);
  RequireCommonLayer(trained, graph_.layers, by_name);
  // ForgetWeights() is called first: if a layer does not fit, the copy stops after other layers
  // have changed.
  ForgetWeights();
  for (const LayerParameter& source : trained.layer()) {
    const NetLayer* target = by_name.Find(source.name());
    if (target == nullptr) {
      if (!source.blobs().empty()) log::Info("Ignoring source layer {}", source.name());
      continue;
    }
    ParamBlobs& blobs = target->layer->blobs();
    const size_t given = CountWithShared(source, *target);
    RequireSameBlobCount(source.name(), blobs.size(), given);
    for (size_t i = 0; i < source.blobs().size(); ++i) {
      const BlobProto& proto = source.blobs(static_cast<int>(i));
      if (IsLeftOut(proto) && SharesParam(*target, i)) continue;
      RequireInLayer(source.name(), HasShapeOf(*blobs[i], proto), ErrorCode::kInvalidArgument,
                     "layer '{}': parameter {} has shape {}, but the trained one has {}; rename "
                     "the layer to learn it from scratch",
                     source.name(), i, blobs[i]->ShapeString(), ShapeString(proto));
      ReadBlobData(proto, blobs[i].get());
    }
  }
}

void Net::ShareTrainedLayersWith(Net& other) {
  const LayersByName by_name(graph_.layers);
  ForgetWeights();  // first, as in CopyTrainedLayersFrom
  size_t shared = 0;
  for (const NetLayer& source : other.graph_.layers) {
    const NetLayer* target = by_name.Find(source.layer->name());
    if (target == nullptr) continue;
    ParamBlobs& blobs = target->layer->blobs();
    RequireSameBlobCount(source.layer->name(), blobs.size(), source.layer->blobs().size());
    for (size_t i = 0; i < blobs.size(); ++i, ++shared) {
      Blob& from = *source.layer->blobs()[i];
      RequireInLayer(source.layer->name(), blobs[i]->shape() == from.shape(),
                     ErrorCode::kInvalidArgument,
                     "parameter {} of layer '{}' has shape {}, but {} in the net that shares it", i,
                     source.layer->name(), blobs[i]->ShapeString(), from.ShapeString());
      blobs[i]->ShareData(from);
    }
  }
  // This net's own weights are not referenced any more, so their memory can be freed.
  if (shared == params_.all().size()) params_.ReleaseData();
}

// Called for all layers, even unchanged ones, because they may share parameters.
void Net::ForgetWeights() {
  for (const NetLayer& layer : graph_.layers) layer.layer->ForgetWeights();
}

NetParameter Net::ToProto(bool write_diff) const {
  NetParameter proto;
  proto.set_name(name());
  for (const NetLayer& layer : graph_.layers) {
    LayerParameter* param = proto.add_layer();
    *param = layer.layer->param();
    param->clear_blobs();
    // Like Caffe, writes the default weight of a loss layer explicitly.
    if (layer.traits.is_loss && param->loss_weight().empty()) param->add_loss_weight(1);
    for (const auto& blob : layer.layer->blobs()) WriteBlob(*blob, write_diff, param->add_blobs());
  }
  return proto;
}

}  // namespace hearth::caffe
