// Updates a net's weights from its diffs, and keeps the history of the update rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/solver/solver_options.h"
#include "hearth/caffe/solver/update_rule.h"

namespace hearth::caffe {

// Updates the weights and the history in each iteration. Used only by the solver's thread.
class WeightUpdate {
 public:
  // Allocates the history on the net's device. All arguments must outlive this object.
  WeightUpdate(const SolverParameter& param, const SolverOptions& options, Net& net);

  // Updates weights and history in iteration `iteration` with learning rate `rate`. The
  // diffs are the sum over `weight` minibatches. Clips the gradient first.
  void Apply(int iteration, float rate, double weight);

  // Shares the history of `owner`, and from then on updates only part `part` of `parts`. The nets
  // must already share their weights. Calls `wait` after each update.
  void Share(WeightUpdate& owner, int part, int parts, std::function<void()> wait);

  // See Solver::history().
  std::vector<Tensor> history();
  // Writes the history blobs of a solver state: for each group, one blob per parameter.
  void WriteHistory(SolverState* state);
  // Throws kInvalidArgument, naming the state's file, if the state is from another net or solver
  // type.
  void ReadHistory(const SolverState& state, const std::string& uri);

 private:
  float GradientScale(double weight);
  double GradientNorm();
  void AddToUpdate(size_t index, TensorUpdate* update);
  void UpdateOnHost(size_t index, const ParamUpdate& rates, int iteration);

  const SolverParameter& param_;
  Net& net_;
  const bool is_root_, on_device_;
  const UpdateRule rule_;
  std::vector<Blob> history_;
  // The range of the flat buffers that this solver updates, and the barrier after the update.
  int64_t begin_ = 0, end_ = 0;
  std::function<void()> wait_;
};

}  // namespace hearth::caffe
