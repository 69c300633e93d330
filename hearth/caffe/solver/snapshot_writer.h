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
  // `solver_file` is the path of the prototxt. `param` must outlive this object.
  SnapshotWriter(const SolverParameter& param, std::string solver_file);

  // Returns snapshot_prefix or, if it is not set, Caffe's default.
  std::string prefix() const;
  // Throws if param.snapshot is set and snapshots cannot be written, so that an unwritable folder
  // is found before hours of training.
  void Check() const;
  // Writes the model, the state (whose learned_net it sets) and the seal, and returns their names.
  // If writing fails, deletes the files that it has written. Creates the state only after the model
  // is written, because both contain copies of large arrays.
  SnapshotFiles Write(Net& net, const std::function<SolverState()>& make_state,
                      const TrainingPosition& position) const;

 private:
  const SolverParameter& param_;
  const std::string solver_file_;
};

}  // namespace hearth::caffe
