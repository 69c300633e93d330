// The files that Caffe writes during training: the model (.caffemodel) and the solver's state
// (.solverstate). A file appears under its name only when it is complete.
#pragma once

#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Returns "<prefix>_iter_<iteration>.<extension>".
std::string SnapshotName(const std::string& prefix, int iteration, const std::string& extension);

// Creates the folder of a file that is about to be written. The folder may have been removed since
// the training began, and hours of training must not fail for that reason.
void MakeFolderOf(const std::string& uri);

// Read and write files, in HDF5 if the name ends in .h5. Damaged files throw kDataLoss.
void WriteModel(const NetParameter& model, const std::string& uri);
NetParameter ReadModel(const std::string& uri);
void WriteState(const SolverState& state, const std::string& uri);
SolverState ReadState(const std::string& uri);

}  // namespace hearth::caffe
