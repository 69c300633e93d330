#pragma once

#include <functional>
#include <string>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/snapshot/snapshot_seal.h"

namespace hearth::caffe {

// Writes a solver's snapshots: <snapshot_prefix>_iter_<N>.caffemodel, .solverstate and their seal.
class SnapshotWriter {
 public:
  // `solver_file`: the path of the prototxt. `param` must outlive it.
  SnapshotWriter(const SolverParameter& param, std::string solver_file);

  // snapshot_prefix, or Caffe's default for it.
  std::string prefix() const;
  // Fails if snapshots at an interval cannot be written: an unwritable folder must not be found
  // only after hours of training.
  void Check() const;
  // Writes model, state (whose learned_net it sets) and seal, and returns their names. If one
  // fails, removes those it has written. The state is made after the model is written, as both copy
  // their values.
  SnapshotFiles Write(Net& net, const std::function<SolverState()>& make_state,
                      const TrainingPosition& position) const;

 private:
  const SolverParameter& param_;
  const std::string solver_file_;
};

}  // namespace hearth::caffe
