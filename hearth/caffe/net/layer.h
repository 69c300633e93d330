#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/caffe/net/layer_traits.h"
#include "hearth/caffe/net/net_context.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tensor/blob.h"

namespace hearth::caffe {

using Blobs = std::vector<Blob*>;

// One layer of a net. As in Caffe, the net calls, in this order:
//   1. the constructor, with the LayerParameter;
//   2. SetUp, once, with the actual bottoms: checks counts, creates parameter blobs and fills them;
//   3. Reshape, before every Forward: sets the shapes of the tops from those of the bottoms;
//   4. Forward, and in training Backward, which writes bottom diffs and ADDS to parameter diffs.
// A layer belongs to one net and one thread. Failures are hearth::Error; the net adds the layer's
// name.
class Layer {
 public:
  Layer(const LayerParameter& param, const NetContext& context)
      : param_(param), context_(context) {}
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  virtual LayerTraits traits() const { return {}; }

  virtual void SetUp(const Blobs& bottom, const Blobs& top) {}
  virtual void Reshape(const Blobs& bottom, const Blobs& top) = 0;
  virtual void Forward(const Blobs& bottom, const Blobs& top) = 0;
  // `propagate_down[i]` is true if the diff of bottom i is needed. A layer that cannot compute a
  // needed diff throws kInvalidArgument.
  virtual void Backward(const Blobs& top, const std::vector<bool>& propagate_down,
                        const Blobs& bottom) = 0;

  // Called after the net has loaded or shared weights. The layer must discard everything that it
  // has computed from the old weights.
  virtual void ForgetWeights() {}

  // True if a later layer overwrites the top in place, so Backward must not read it. The net sets
  // this after SetUp.
  bool top_overwritten() const { return top_overwritten_; }
  void set_top_overwritten(bool value) { top_overwritten_ = value; }

  // If gated_by_reader() is set, a layer with LayerTraits::gated_by_sign passes its gradient on
  // unchanged, because the layer that reads its top, whose gates_bottom() is set, applies the gate.
  // See MoveReluGates().
  bool gated_by_reader() const { return gated_by_reader_; }
  void set_gated_by_reader(bool value) { gated_by_reader_ = value; }
  bool gates_bottom() const { return gates_bottom_; }
  void set_gates_bottom(bool value) { gates_bottom_ = value; }

  // Reads the next minibatch, if the layer is fed by rows (MemoryData, CoSData), and returns its
  // number of rows, which the next Forward delivers. Returns 0 at the end of the epoch; Forward
  // must then not be called. Returns nullopt if the layer is not fed.
  virtual std::optional<int64_t> Fetch() { return std::nullopt; }
  // The valid rows of the last Fetch, in the order of the tops; used to name results. Valid until
  // the next Fetch. Null if the layer is not fed.
  virtual const dataset::Minibatch* fetched_rows() const { return nullptr; }
  virtual void NextEpoch() {}

  const LayerParameter& param() const { return param_; }
  const std::string& name() const { return param_.name(); }
  const std::string& type() const { return param_.type(); }
  // Learnable parameters, in the order of the .caffemodel file.
  std::vector<std::shared_ptr<Blob>>& blobs() { return blobs_; }
  // False if a parameter's diff is not needed (lr_mult is 0), so Backward may skip it.
  bool param_propagate_down(size_t i) const {
    return i >= param_propagate_down_.size() || param_propagate_down_[i];
  }
  void set_param_propagate_down(size_t i, bool value) {
    if (param_propagate_down_.size() <= i) param_propagate_down_.resize(i + 1, true);
    param_propagate_down_[i] = value;
  }

 protected:
  const NetContext& context() const { return context_; }
  // True if the layer should compute with ATen's kernels on the blobs' device_data() and
  // device_diff(). Layers that do not support a device ignore this and use the host's copies.
  bool on_device() const { return context_.device.separate; }

  LayerParameter param_;
  std::vector<std::shared_ptr<Blob>> blobs_;

 private:
  NetContext context_;
  bool top_overwritten_ = false;
  bool gated_by_reader_ = false, gates_bottom_ = false;
  std::vector<bool> param_propagate_down_;
};

}  // namespace hearth::caffe
