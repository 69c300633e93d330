// Caffe's files of a training run: the model (.caffemodel) and the solver's state (.solverstate).
// Files appear under their names only when they are complete.
#pragma once

#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// "<prefix>_iter_<iteration>.<extension>".
std::string SnapshotName(const std::string& prefix, int iteration, const std::string& extension);

// Creates the folder of a file that is about to be written, in case it was removed since the
// training began: that must not end hours of training.
void MakeFolderOf(const std::string& uri);

// Files whose names end in .h5 are HDF5. Damaged files throw kDataLoss.
void WriteModel(const NetParameter& model, const std::string& uri);
NetParameter ReadModel(const std::string& uri);
void WriteState(const SolverState& state, const std::string& uri);
SolverState ReadState(const std::string& uri);

}  // namespace hearth::caffe
