// The weights at the end of a training: their check and their file.
#pragma once

#include <string>

#include "hearth/caffe/solver/solver.h"
#include "hearth/collective/group.h"

namespace hearth::trainer {

// Returns the SHA-256 of the weights. Collective; throws as Group::Run does, and kInternal if those
// of other ranks differ: otherwise diverged ranks would go unnoticed.
std::string CheckEqualWeights(collective::Group& group, caffe::Solver& solver);

// Writes the model as `uri`, with the format of the snapshots, and returns the file's name, whose
// ending says the format (CaffeOnSpark's rule).
std::string WriteFinalModel(const std::string& uri, caffe::Solver& solver);

}  // namespace hearth::trainer
