// Checks and writes the weights at the end of a training.
#pragma once

#include <string>

#include "hearth/caffe/solver/solver.h"
#include "hearth/collective/group.h"

namespace hearth::trainer {

// Returns the SHA-256 of the weights. Collective. Throws as Group::Run does, and kInternal if the
// ranks' weights differ, which would otherwise go unnoticed.
std::string CheckEqualWeights(collective::Group& group, caffe::Solver& solver);

// Writes the model to `uri`, in the format of the snapshots. Returns the file's name, whose
// extension is changed to match the format, as in CaffeOnSpark.
std::string WriteFinalModel(const std::string& uri, caffe::Solver& solver);

}  // namespace hearth::trainer
