// Caffe's HDF5 formats of models (.caffemodel.h5) and solver states (.solverstate.h5). Errors are
// those of Hdf5File.
#pragma once

#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

bool IsHdf5Name(const std::string& uri);

// Writes /data/<layer>/<i>, and /diff/<layer>/<i> if the blobs have diffs. As in Caffe, a parameter
// that an earlier layer owns is omitted from /data. Names with a slash become nested groups.
void WriteModelHdf5(const NetParameter& model, const std::string& uri);
// In the result, the blobs of parameters that another layer owns have no values.
NetParameter ReadModelHdf5(const std::string& uri);

// Writes /iter, /learned_net, /current_step and /history/<i>.
void WriteStateHdf5(const SolverState& state, const std::string& uri);
SolverState ReadStateHdf5(const std::string& uri);

}  // namespace hearth::caffe
