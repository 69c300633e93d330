#include "hearth/caffe/net/net_params.h"

#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_step.h"
#include "hearth/caffe/tensor/tensor_error.h"

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
          permissive ? "" : "; share_mode: PERMISSIVE requires only the same count");
}

// If several layers set a multiplier, their values must be equal.
void MergeMultiplier(const char* what, const ParamSpec& spec, std::optional<float> given,
                     bool owner_gave_it, float* value) {
  if (!given) return;
  Require(!owner_gave_it || *given == *value, ErrorCode::kInvalidArgument,
          "shared parameter '{}' has {} {} here and {} in another layer", spec.name(), what, *given,
          *value);
  *value = *given;
}

// Allocates one tensor for all parameters of the net.
Tensor Zeros(int64_t count, const std::string& net) {
  try {
    return Tensor::Zeros({count});
  } catch (const TensorError& error) {
    if (!error.out_of_memory()) throw;
  }
  Throw(ErrorCode::kResourceExhausted,
        "out of memory: the parameters of net '{}', {} values together, take {} MB", net, count,
        count * static_cast<int64_t>(sizeof(float)) >> 20);
}

Tensor DeviceZeros(int64_t count, const ComputeDevice& device) {
  if (!device.separate) return {};
  return Tensor::ZerosOn(device.device, {count});
}

}  // namespace

// The flat memory of all diffs, which is allocated when a diff is first needed.
struct NetParams::Diffs {
  std::string net;
  int64_t count;
  ComputeDevice device;
  Tensor host;
  Tensor remote;  // undefined if the device has no separate memory

  void Allocate() {
    if (host.defined()) return;
    host = Zeros(count, net);
    remote = DeviceZeros(count, device);
  }
};

NetParams::NetParams(NetGraph& graph, const ComputeDevice& device)
    : graph_(&graph), device_(device) {
  std::unordered_map<std::string, int> owners;  // owner's index in all_, by parameter name
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
  // Moves all parameters into one array, in the order of the layers. The array is summed,
  // broadcast, hashed and updated as a whole, without copies.
  BindData(Zeros(layout_.size, graph.name));
  AllocateDiffs();
}

// Layers that share a parameter add their gradients to one buffer, whose address does not change
// after its first use.
void NetParams::AllocateDiffs() {
  diffs_ = std::make_shared<Diffs>(Diffs{graph_->name, layout_.size, device_, {}, {}});
  for (size_t i = 0; i < learnable_.size(); ++i) {
    const ParamLayout::Slice slice = layout_.slices[i];
    // Allocated on first use, since a net that only runs forward needs no gradients. The closure
    // and the net own the memory jointly.
    learnable_[i].blob->BindDiff([diffs = diffs_, slice] {
      diffs->Allocate();
      const auto part = [&](const Tensor& flat) {
        return flat.defined() ? flat.narrow(0, slice.offset, slice.count) : Tensor();
      };
      return std::pair(part(diffs->host), part(diffs->remote));
    });
  }
  ShareWithOwners(&Blob::ShareDiff);
}

// Adds a parameter that this layer owns.
void NetParams::Add(NetGraph& graph, int layer_index, int index) {
  Layer& layer = *graph.layers[layer_index].layer;
  const ParamSpec& spec = SpecOf(layer, index);
  Blob* blob = layer.blobs()[index].get();
  learnable_.push_back({blob, spec.lr_mult(), spec.decay_mult()});
  has_lr_mult_.push_back(spec.has_lr_mult());
  has_decay_mult_.push_back(spec.has_decay_mult());
  layout_.Append(blob->count());
}

// Adds a parameter that another layer owns; ShareWithOwners later sets the blob's memory to the
// owner's. Any of the layers may set a multiplier, but all of them must set the same value.
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

// The device may have newer values than the host; param.blob->data() copies them to the host's
// array.
const Tensor& NetParams::data() const {
  for (const LearnableParam& param : learnable_) param.blob->data();
  return data_;
}

const Tensor& NetParams::diff() {
  diffs_->Allocate();
  for (const LearnableParam& param : learnable_) param.blob->diff();
  return diffs_->host;
}

const Tensor& NetParams::device_diff() {
  if (!device_.separate) return diff();
  diffs_->Allocate();
  for (const LearnableParam& param : learnable_) param.blob->device_diff();
  return diffs_->remote;
}

Tensor NetParams::SliceOf(const Tensor& flat, size_t learnable) const {
  if (!flat.defined()) return {};
  const ParamLayout::Slice slice = layout_.slices[learnable];
  return flat.narrow(0, slice.offset, slice.count);
}

void NetParams::BindData(Tensor flat) {
  data_ = std::move(flat);
  const Tensor on_device = DeviceZeros(layout_.size, device_);
  for (size_t i = 0; i < learnable_.size(); ++i) {
    Blob& blob = *learnable_[i].blob;
    Tensor slice = SliceOf(data_, i);
    slice.copy_(blob.data().view({-1}));  // keeps the values of the parameter
    blob.BindData(std::move(slice), SliceOf(on_device, i));
  }
  ShareWithOwners(&Blob::ShareData);  // replaces the values from a sharing layer's filler
}

void NetParams::ShareData(NetParams& owner) {
  for (size_t i = 0; i < learnable_.size(); ++i) {
    learnable_[i].blob->ShareData(*owner.learnable_[i].blob);
  }
  data_ = owner.data_;
  ShareWithOwners(&Blob::ShareData);
}

void NetParams::BindDiff(Tensor flat) {
  if (diffs_->host.defined()) flat.narrow(0, 0, layout_.size).copy_(diff());  // keeps the values
  diffs_ = std::make_shared<Diffs>(Diffs{graph_->name, layout_.size, device_, std::move(flat),
                                         DeviceZeros(layout_.size, device_)});
  for (size_t i = 0; i < learnable_.size(); ++i) {
    learnable_[i].blob->BindDiff(SliceOf(diffs_->host, i), SliceOf(diffs_->remote, i));
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
  for (const LearnableParam& param : learnable_) param.blob->ClearDiff();
}

}  // namespace hearth::caffe
