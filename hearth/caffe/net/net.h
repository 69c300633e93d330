#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/caffe/net/layer.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/net/memory_plan.h"
#include "hearth/caffe/net/net_context.h"
#include "hearth/caffe/net/net_graph.h"
#include "hearth/caffe/net/net_params.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tensor/blob.h"

namespace hearth::caffe {

// A network of layers, built from its prototxt. A training step consists of Fetch, which reads a
// minibatch if the net is fed by rows, Forward, and Backward, which adds to the parameters' diffs.
// A net and all objects that it returns must be used by one thread. Failures are hearth::Error and
// name the layer and its type.
class Net {
 public:
  // Applies the include and exclude rules for context.phase and for the level and stages of
  // param.state, inserts Split layers, and sets up every layer. `param` must be in the current
  // format; see net_file.h.
  Net(const NetParameter& param, const NetContext& context,
      const LayerRegistry& registry = LayerRegistry::Default());
  ~Net();
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  // Running.

  // Reads the next minibatch in the layers that are fed by rows and returns its number of rows.
  // Returns 0 at the end of the epoch; Forward must then not be called. Returns nullopt if no layer
  // is fed.
  std::optional<int64_t> Fetch();
  void NextEpoch();
  // batch_size of the fed layer in the prototxt; 0 if no layer is fed.
  int64_t batch_size() const { return batch_size_; }

  // Runs all layers, or the layers `from` to `to` inclusive; reshapes each one first. Returns the
  // loss: the sum of loss_weight * top.
  float Forward() { return Forward(0, last_layer()); }
  float Forward(int from, int to);
  // The two halves of Forward(). On a device, Backward may be called between them, so that all work
  // is submitted before FinishForward() waits for the loss.
  void StartForward() { StartForward(0, last_layer()); }
  float FinishForward() { return FinishForward(0, last_layer()); }
  // Runs Backward from layer `from` down to layer `to`, inclusive.
  void Backward() { Backward(last_layer(), 0); }
  void Backward(int from, int to);
  // From the next Forward on, multiplies the gradients, but not the returned loss, by `scale`.
  void SetLossScale(float scale) { loss_scale_ = scale; }
  void ClearParamDiffs() { params_.ClearDiffs(); }
  // Reshapes all layers, so that they follow new input shapes, without running them.
  void Reshape();
  // Registers a callback that is called before and after the Forward and the Backward of each
  // layer, with the layer's index. Several callbacks are called in the order in which they were
  // added.
  enum class LayerEvent { kBeforeForward, kAfterForward, kBeforeBackward, kAfterBackward };
  void AddLayerCallback(std::function<void(LayerEvent, int)> callback) {
    layer_callbacks_.push_back(std::move(callback));
  }
  // The callback is called during Backward when the diff of the learnable parameter with this index
  // is final: once per parameter and full Backward. May be empty.
  void set_on_gradient_ready(std::function<void(size_t)> callback) {
    on_gradient_ready_ = std::move(callback);
  }

  // Structure.

  const std::string& name() const { return graph_.name; }
  Phase phase() const { return phase_; }
  const ComputeDevice& device() const { return params_.device(); }
  const std::vector<NetLayer>& layers() const { return graph_.layers; }
  int last_layer() const { return static_cast<int>(graph_.layers.size()) - 1; }
  // Throws kNotFound, with the most similar names, if there is no such layer.
  Layer& layer(const std::string& name);
  int layer_index(const std::string& name) const;
  const std::vector<std::string>& blob_names() const { return graph_.blob_names; }
  bool has_blob(const std::string& name) const { return graph_.blob_ids.count(name) > 0; }
  Blob& blob(const std::string& name);
  Blob& blob(size_t index) { return *graph_.blobs[index]; }  // in the order of blob_names()
  // Inputs are the tops of Input layers, in order. Outputs are the tops that no layer reads, in
  // alphabetical order as in Caffe.
  const std::vector<std::string>& input_names() const { return graph_.inputs; }
  const std::vector<std::string>& output_names() const { return graph_.outputs; }
  // The weight of the output in the loss; 0 if it is not a loss.
  float loss_weight(const std::string& blob_name) const;

  // Blobs that share memory with other values, which overwrite them during Forward.
  const std::vector<int>& short_lived() const { return short_lived_; }
  // The memory saved by sharing. All zero without NetContext::share_diffs or share_data.
  const MemoryPlan& diff_plan() const { return diff_plan_; }
  const MemoryPlan& data_plan() const { return data_plan_; }

  // Parameters.

  NetParams& params() { return params_; }
  const NetParams& params() const { return params_; }
  // Copies the weights of layers in `trained` that have the same name as a layer of this net. Logs
  // the names of the other layers and ignores their weights.
  void CopyTrainedLayersFrom(const NetParameter& trained);
  // Uses the weights of `other` in layers of the same name, without copying them: a TEST net uses
  // the weights of a TRAIN net. Both nets must be used by one thread.
  void ShareTrainedLayersWith(Net& other);
  // The net as built, with its weights, as stored in a .caffemodel file.
  NetParameter ToProto(bool write_diff = false) const;

 private:
  void PlanMemory(const NetContext& context, bool debug_info);
  void ForgetWeights();
  void StartForward(int from, int to);
  float FinishForward(int from, int to);
  void SetLossGradient(NetLayer& layer);
  static float LossOf(const NetLayer& layer);
  void Notify(LayerEvent event, int layer) const {
    for (const auto& callback : layer_callbacks_) callback(event, layer);
  }
  void FindGradientOrder();

  Phase phase_;
  NetGraph graph_;
  NetParams params_;
  MemoryPlan diff_plan_, data_plan_;
  std::vector<int> short_lived_;
  int64_t batch_size_ = 0;
  float loss_scale_ = 1;
  float loss_ = 0;                // of the last Forward; unused if reads_loss_last_
  bool reads_loss_last_ = false;  // true if FinishForward() reads the loss
  // gradients_final_after_[i] lists the learnable parameters whose diff is final after layer i's
  // Backward.
  std::vector<std::vector<size_t>> gradients_final_after_;
  std::vector<size_t> gradients_never_written_;
  std::vector<std::function<void(LayerEvent, int)>> layer_callbacks_;
  std::function<void(size_t)> on_gradient_ready_;
};

}  // namespace hearth::caffe
