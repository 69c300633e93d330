#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hearth/caffe/net/net_graph.h"
#include "hearth/caffe/net/param_layout.h"
#include "hearth/caffe/tensor/blob.h"

namespace hearth::caffe {

// A parameter that the solver updates.
struct LearnableParam {
  Blob* blob;
  float lr_mult, decay_mult;
};

// A parameter blob of a layer; several layers may share one learnable parameter.
struct NetParam {
  int layer, index;  // blobs()[index] of layers[layer]
  std::string name;  // ParamSpec.name, or ""
  int owner;         // position of the NetParam whose memory it uses, -1: its own
  size_t learnable;
};

// The parameters of a net: sharing, learning rates, and the flat buffers of the learnable ones.
// Belongs to its net.
class NetParams {
 public:
  // Connects shared parameters and moves all learnable ones into one flat buffer, with another one
  // in the device's memory if that is separate.
  NetParams(NetGraph& graph, const ComputeDevice& device);

  const std::vector<NetParam>& all() const { return all_; }
  const std::vector<LearnableParam>& learnable() const { return learnable_; }
  const ParamLayout& layout() const { return layout_; }
  const ComputeDevice& device() const { return device_; }

  // The flat float32 buffers, laid out by layout(). All diffs are allocated (zeroed) together on
  // first use and keep their addresses until BindDiff(). As for a blob, the device's copy is stale
  // after these.
  const Tensor& data() const;
  const Tensor& diff();
  // The device's copy of all diffs.
  const Tensor& device_diff();
  // Moves the parameters, or their diffs, into `flat` (layout().size floats), keeping the values.
  void BindData(Tensor flat);
  void BindDiff(Tensor flat);
  void ClearDiffs();
  // Uses the values of `owner`, the parameters of the same net in another thread. The writer must
  // ensure that there are no concurrent readers.
  void ShareData(NetParams& owner);
  // Releases the data buffer once every parameter uses another net's memory.
  void ReleaseData() { data_.reset(); }

 private:
  struct Diffs;

  void Add(NetGraph& graph, int layer_index, int index);
  void Share(NetGraph& graph, NetParam& param);
  void ShareWithOwners(void (Blob::*share)(Blob&));
  void AllocateDiffs();
  Tensor SliceOf(const Tensor& flat, size_t learnable) const;

  NetGraph* graph_;
  ComputeDevice device_;
  std::vector<NetParam> all_;
  std::vector<LearnableParam> learnable_;
  std::vector<bool> has_lr_mult_,
      has_decay_mult_;  // per learnable parameter: set in the prototxt
  ParamLayout layout_;
  Tensor data_;
  std::shared_ptr<Diffs> diffs_;  // also owned by the blobs, which may outlive the net
};

}  // namespace hearth::caffe
