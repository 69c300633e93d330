#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/solver/solver_options.h"

namespace hearth::caffe {

// The test nets of a solver, which share its weights.
class TestNets {
 public:
  // Builds the nets of `param` on the root, unless the observer validates. `seed` seeds their
  // random numbers. `param` and `options` must outlive this object.
  TestNets(const SolverParameter& param, const SolverOptions& options, uint64_t seed);

  // Runs every net for its test_iter with the weights of `trained`, and logs the means of the
  // outputs as Caffe does.
  void RunAll(int iteration, Net& trained);

  const std::vector<std::unique_ptr<Net>>& nets() const { return nets_; }

 private:
  void Run(size_t index, int iteration, Net& trained);

  const SolverParameter& param_;
  SolverObserver& observer_;
  std::vector<std::unique_ptr<Net>> nets_;
};

}  // namespace hearth::caffe
