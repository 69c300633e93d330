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

// A parameter blob of a layer. Several layers may share one learnable parameter.
struct NetParam {
  int layer, index;  // blobs()[index] of layers[layer]
  std::string name;  // ParamSpec.name, or ""
  int owner;         // index of the NetParam whose memory it shares; -1 if it has separate memory
  size_t learnable;
};

// The parameters of a net: which layers share them, their learning rates, and flat buffers of the
// learnable ones. Owned by the net.
class NetParams {
 public:
  // Connects shared parameters and moves all learnable parameters into one flat buffer. If the
  // device has separate memory, also creates a flat buffer there.
  NetParams(NetGraph& graph, const ComputeDevice& device);

  const std::vector<NetParam>& all() const { return all_; }
  const std::vector<LearnableParam>& learnable() const { return learnable_; }
  const ParamLayout& layout() const { return layout_; }
  const ComputeDevice& device() const { return device_; }

  // The flat float32 buffers of all values and of all diffs, in the order of layout(). The diffs
  // are allocated and zeroed on first use, and keep their addresses until BindDiff(). As with a
  // blob, calling these functions invalidates the device's copy.
  const Tensor& data() const;
  const Tensor& diff();
  // The copy of all diffs in the device's memory.
  const Tensor& device_diff();
  // Moves the parameters (or their diffs) into `flat`, which must have layout().size floats. The
  // values are copied.
  void BindData(Tensor flat);
  void BindDiff(Tensor flat);
  void ClearDiffs();
  // Uses the values of `owner`, the parameters of an equal net in another thread. The thread that
  // writes them must ensure that no other thread reads them at the same time.
  void ShareData(NetParams& owner);
  // Releases the data buffer. Every parameter must use the memory of another net by then.
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
      has_decay_mult_;  // per learnable parameter: true if set in the prototxt
  ParamLayout layout_;
  Tensor data_;
  std::shared_ptr<Diffs> diffs_;  // the blobs are owners, too, because they may outlive the net
};

}  // namespace hearth::caffe
