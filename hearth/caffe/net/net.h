// A network of layers, built from its prototxt. The life of one step: Fetch takes a minibatch where
// the net is fed by rows; Forward; Backward adds to the parameters' diffs. A net and everything it
// hands out belong to one thread. Failures are hearth::Error and name the layer and its type.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/caffe/net/blob.h"
#include "hearth/caffe/net/layer.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/net/memory_plan.h"
#include "hearth/caffe/net/net_context.h"
#include "hearth/caffe/net/net_graph.h"
#include "hearth/caffe/net/net_params.h"
#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

class Net {
 public:
  // Applies include/exclude rules for context.phase and param.state's level and stages, inserts
  // Split layers, and sets up every layer. `param` is in the current format: see net_file.h.
  Net(const NetParameter& param, const NetContext& context,
      const LayerRegistry& registry = LayerRegistry::Default());
  ~Net();
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  // --- running ---
  // Takes the next minibatch in the layers that are fed by rows and returns its size: 0 once the
  // epoch is over (Forward must then not be called), nullopt where no layer is fed.
  std::optional<int64_t> Fetch();
  void NextEpoch();
  // The batch_size that the prototxt gives the fed layer; 0 where no layer is fed.
  int64_t batch_size() const { return batch_size_; }

  // Runs all layers, or [from, to] inclusive, reshaping each first. Returns the loss: the sum of
  // loss_weight * top.
  float Forward() { return Forward(0, last_layer()); }
  float Forward(int from, int to);
  // The two halves of Forward(): Backward may come between them where a net computes on a device,
  // which then need not be waited for before its work is all given out.
  void StartForward() { StartForward(0, last_layer()); }
  float FinishForward() { return FinishForward(0, last_layer()); }
  // Runs from layer `from` down to `to` inclusive.
  void Backward() { Backward(last_layer(), 0); }
  void Backward(int from, int to);
  // Gradients (not the loss returned) are multiplied by `scale`, from the next Forward on.
  void SetLossScale(float scale) { loss_scale_ = scale; }
  void ClearParamDiffs() { params_.ClearDiffs(); }
  // Propagates new input shapes without running the layers.
  void Reshape();
  // Called around the Forward and the Backward of each layer, with its index, as long as the net
  // lives; several in the order in which they were added.
  enum class LayerEvent { kBeforeForward, kAfterForward, kBeforeBackward, kAfterBackward };
  void AddLayerCallback(std::function<void(LayerEvent, int)> callback) {
    layer_callbacks_.push_back(std::move(callback));
  }
  // Called during Backward when no layer will add to this learnable parameter's diff any more; once
  // per parameter and full Backward. Empty: not called.
  void set_on_gradient_ready(std::function<void(size_t)> callback) {
    on_gradient_ready_ = std::move(callback);
  }

  // --- structure ---
  const std::string& name() const { return graph_.name; }
  Phase phase() const { return phase_; }
  const ComputeDevice& device() const { return params_.device(); }
  const std::vector<NetLayer>& layers() const { return graph_.layers; }
  int last_layer() const { return static_cast<int>(graph_.layers.size()) - 1; }
  // kNotFound with the nearest names where there is none.
  Layer& layer(const std::string& name);
  int layer_index(const std::string& name) const;
  const std::vector<std::string>& blob_names() const { return graph_.blob_names; }
  bool has_blob(const std::string& name) const { return graph_.blob_ids.count(name) > 0; }
  Blob& blob(const std::string& name);
  Blob& blob(size_t index) { return *graph_.blobs[index]; }  // in the order of blob_names()
  // Tops of Input layers, in order; tops that no layer consumes, in alphabetical order as in Caffe.
  const std::vector<std::string>& input_names() const { return graph_.inputs; }
  const std::vector<std::string>& output_names() const { return graph_.outputs; }
  // Weight of the output in the loss, 0 where it is not a loss.
  float loss_weight(const std::string& blob_name) const;

  // Blobs whose values are gone after Forward, because others reuse their memory.
  const std::vector<int>& short_lived() const { return short_lived_; }
  // What sharing memory saves; all zero without NetContext::share_diffs, share_data.
  const MemoryPlan& diff_plan() const { return diff_plan_; }
  const MemoryPlan& data_plan() const { return data_plan_; }

  // --- parameters ---
  NetParams& params() { return params_; }
  const NetParams& params() const { return params_; }
  // Copies the weights of the layers that have the same name; others are left as they are and
  // logged.
  void CopyTrainedLayersFrom(const NetParameter& trained);
  // Uses `other`'s weights for layers of the same name, without a copy: a TEST net beside its TRAIN
  // net. Both must stay on one thread.
  void ShareTrainedLayersWith(Net& other);
  // The net as built, with its weights: the content of a .caffemodel.
  NetParameter ToProto(bool write_diff = false) const;

 private:
  void PlanMemory(const NetContext& context, bool debug_info);
  void StartForward(int from, int to);
  float FinishForward(int from, int to);
  void SetLossGradient(NetLayer& layer);
  static float LossOf(const NetLayer& layer);
  void Tell(LayerEvent event, int layer) const {
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
  float loss_ = 0;                // of the last Forward, where it is not read at its end
  bool reads_loss_last_ = false;  // at the end of Forward
  // gradients_final_after_[i]: learnable parameters whose diff is final after layer i's Backward.
  std::vector<std::vector<size_t>> gradients_final_after_;
  std::vector<size_t> gradients_never_written_;
  std::vector<std::function<void(LayerEvent, int)>> layer_callbacks_;
  std::function<void(size_t)> on_gradient_ready_;
};

}  // namespace hearth::caffe
