// The parameters of a net: which are shared, how fast each learns, and the flat buffers that hold
// the learnable ones. Belongs to its net.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hearth/caffe/net/blob.h"
#include "hearth/caffe/net/net_graph.h"
#include "hearth/caffe/net/param_layout.h"

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
  int owner;         // position of the NetParam whose memory it uses, -1 if its own
  size_t learnable;
};

class NetParams {
 public:
  // Connects shared parameters and moves all learnable ones into one flat buffer, with another one
  // in the device's memory if that is separate.
  NetParams(NetGraph& graph, const ComputeDevice& device);

  const std::vector<NetParam>& all() const { return all_; }
  const std::vector<LearnableParam>& learnable() const { return learnable_; }
  const ParamLayout& layout() const { return layout_; }
  const ComputeDevice& device() const { return device_; }

  // The flat float32 buffers, laid out by layout(). Diffs are allocated (zeroed) on first use, all
  // of them together, and stay at their addresses until BindDiff(). As with a blob's, the device's
  // copy is stale after these.
  const Tensor& data() const;
  const Tensor& diff();
  // The device's copy of all diffs.
  const Tensor& device_diff();
  // Moves the parameters, or their diffs, into `flat` (layout().size floats), values included.
  void BindData(Tensor flat);
  void BindDiff(Tensor flat);
  void ClearDiffs();
  // Uses the values of `owner`, the parameters of the same net in another thread, instead of its
  // own. The writer must make sure that nobody reads meanwhile.
  void ShareData(NetParams& owner);
  // Drops the data buffer once every parameter uses another net's memory.
  void ReleaseData() { data_.reset(); }

 private:
  struct Diffs;

  void Add(NetGraph& graph, int layer_index, int index);
  void Share(NetGraph& graph, NetParam& param);
  void ShareWithOwners(void (Blob::*share)(Blob&));
  void PlaceDiffs();
  Tensor SliceOf(const Tensor& flat, size_t learnable) const;

  NetGraph* graph_;
  ComputeDevice device_;
  std::vector<NetParam> all_;
  std::vector<LearnableParam> learnable_;
  std::vector<bool> has_lr_mult_,
      has_decay_mult_;  // per learnable: given in the prototxt
  ParamLayout layout_;
  Tensor data_;
  std::shared_ptr<Diffs> diffs_;  // also owned by the blobs, which may outlive the net
};

}  // namespace hearth::caffe
