#include "hearth/caffe/net/net_params.h"

#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_step.h"
#include "hearth/caffe/net/out_of_memory.h"

namespace hearth::caffe {
namespace {

const ParamSpec& SpecOf(const Layer& layer, int index) {
  const LayerParameter& param = layer.param();
  return index < param.param_size() ? param.param(index) : ParamSpec::Default();
}

void CheckSharedShape(const ParamSpec& spec, const Blob& blob, const Blob& owner,
                      const std::string& owner_layer) {
  const bool permissive = spec.share_mode() == ParamSpec::PERMISSIVE;
  const bool fits = permissive ? blob.count() == owner.count() : blob.shape() == owner.shape();
  Require(fits, ErrorCode::kInvalidArgument,
          "parameter '{}' of shape {} cannot be shared with layer '{}', where its shape is {}{}",
          spec.name(), blob.ShapeString(), owner_layer, owner.ShapeString(),
          permissive ? "" : "; share_mode: PERMISSIVE asks only for the same count");
}

// A multiplier that several layers give must be the same in all of them.
void MergeMultiplier(const char* what, const ParamSpec& spec, std::optional<float> given,
                     bool owner_gave_it, float* value) {
  if (!given) return;
  Require(!owner_gave_it || *given == *value, ErrorCode::kInvalidArgument,
          "shared parameter '{}' has {} {} here and {} elsewhere", spec.name(), what, *given,
          *value);
  *value = *given;
}

// For all parameters of the net together.
at::Tensor Zeros(int64_t count, const NetGraph& graph) {
  try {
    return at::zeros({count}, at::kFloat);
  } catch (const c10::Error& error) {
    if (!IsOutOfMemory(error)) throw;
  }
  Throw(ErrorCode::kResourceExhausted,
        "out of memory: the parameters of net '{}', {} values together, take {} MB", graph.name,
        count, count * static_cast<int64_t>(sizeof(float)) >> 20);
}

}  // namespace

NetParams::NetParams(NetGraph& graph, const ComputeDevice& device)
    : graph_(&graph), device_(device) {
  std::unordered_map<std::string, int> owners;  // by name, positions in all_
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    Layer& layer = *graph.layers[i].layer;
    InLayer(layer, "parameters", graph.layers[i].bottom, [&] {
      for (int j = 0; j < static_cast<int>(layer.blobs().size()); ++j) {
        const std::string& name = SpecOf(layer, j).name();
        NetParam param{static_cast<int>(i), j, name, -1, learnable_.size()};
        const auto [owner, is_first] = owners.emplace(name, static_cast<int>(all_.size()));
        if (!is_first && !name.empty()) param.owner = owner->second;
        param.owner < 0 ? Add(graph, param.layer, j) : Share(graph, param);
        all_.push_back(param);
      }
    });
  }
  BindData(Zeros(layout_.size, graph));
}

// One that is no other's.
void NetParams::Add(NetGraph& graph, int layer_index, int index) {
  Layer& layer = *graph.layers[layer_index].layer;
  const ParamSpec& spec = SpecOf(layer, index);
  Blob* blob = layer.blobs()[index].get();
  learnable_.push_back({blob, spec.lr_mult(), spec.decay_mult()});
  has_lr_mult_.push_back(spec.has_lr_mult());
  has_decay_mult_.push_back(spec.has_decay_mult());
  layout_.Append(blob->count());
}

void NetParams::Share(NetGraph& graph, NetParam& param) {
  const Layer& layer = *graph.layers[param.layer].layer;
  const ParamSpec& spec = SpecOf(layer, param.index);
  const NetParam& owner = all_[param.owner];
  param.learnable = owner.learnable;
  LearnableParam& learnable = learnable_[owner.learnable];
  Blob& blob = *graph.layers[param.layer].layer->blobs()[param.index];
  CheckSharedShape(spec, blob, *learnable.blob, graph.layers[owner.layer].layer->name());
  const auto given = [](bool has, float value) {
    return has ? std::optional(value) : std::nullopt;
  };
  MergeMultiplier("lr_mult", spec, given(spec.has_lr_mult(), spec.lr_mult()),
                  has_lr_mult_[owner.learnable], &learnable.lr_mult);
  MergeMultiplier("decay_mult", spec, given(spec.has_decay_mult(), spec.decay_mult()),
                  has_decay_mult_[owner.learnable], &learnable.decay_mult);
  has_lr_mult_[owner.learnable] = has_lr_mult_[owner.learnable] || spec.has_lr_mult();
  has_decay_mult_[owner.learnable] = has_decay_mult_[owner.learnable] || spec.has_decay_mult();
}

const at::Tensor& NetParams::data() const {
  for (const LearnableParam& param : learnable_) param.blob->data();
  return data_;
}

const at::Tensor& NetParams::diff() {
  AllocateDiffs();
  for (const LearnableParam& param : learnable_) param.blob->diff();
  return diff_;
}

const at::Tensor& NetParams::device_diff() {
  if (!device_.separate) return diff();
  AllocateDiffs();
  for (const LearnableParam& param : learnable_) param.blob->device_diff();
  return device_diff_;
}

void NetParams::AllocateDiffs() {
  if (!diff_.defined()) BindDiff(Zeros(layout_.size, *graph_));
}

at::Tensor NetParams::DeviceBuffer() const {
  if (!device_.separate) return {};
  return at::zeros({layout_.size}, at::TensorOptions(at::kFloat).device(device_.device));
}

at::Tensor NetParams::SliceOf(const at::Tensor& flat, size_t learnable) const {
  if (!flat.defined()) return {};
  const ParamLayout::Slice slice = layout_.slices[learnable];
  return flat.narrow(0, slice.offset, slice.count);
}

void NetParams::BindData(at::Tensor flat) {
  data_ = std::move(flat);
  const at::Tensor on_device = DeviceBuffer();
  for (size_t i = 0; i < learnable_.size(); ++i) {
    Blob& blob = *learnable_[i].blob;
    at::Tensor slice = SliceOf(data_, i);
    slice.copy_(blob.data().view({-1}));  // values move along
    blob.BindData(std::move(slice), SliceOf(on_device, i));
  }
  ShareWithOwners(&Blob::ShareData);  // those of a sharing layer's own filler are dropped
}

void NetParams::ShareData(NetParams& owner) {
  for (size_t i = 0; i < learnable_.size(); ++i) {
    learnable_[i].blob->ShareData(*owner.learnable_[i].blob);
  }
  data_ = owner.data_;
  ShareWithOwners(&Blob::ShareData);
}

void NetParams::BindDiff(at::Tensor flat) {
  diff_ = std::move(flat);
  device_diff_ = DeviceBuffer();
  for (size_t i = 0; i < learnable_.size(); ++i) {
    Blob& blob = *learnable_[i].blob;
    at::Tensor slice = SliceOf(diff_, i);
    if (blob.has_diff()) slice.copy_(blob.diff().view({-1}));
    blob.BindDiff(std::move(slice), SliceOf(device_diff_, i));
  }
  ShareWithOwners(&Blob::ShareDiff);
}

void NetParams::ShareWithOwners(void (Blob::*share)(Blob&)) {
  for (const NetParam& param : all_) {
    if (param.owner < 0) continue;
    Blob& blob = *graph_->layers[param.layer].layer->blobs()[param.index];
    (blob.*share)(*learnable_[param.learnable].blob);
  }
}

void NetParams::ClearDiffs() {
  AllocateDiffs();
  for (const LearnableParam& param : learnable_) param.blob->ClearDiff();
}

}  // namespace hearth::caffe
