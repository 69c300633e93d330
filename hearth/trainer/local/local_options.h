#pragma once

#include <string>
#include <vector>

#include "hearth/settings/settings.h"

namespace hearth::trainer {

// The flags of the caffe program.
struct LocalOptions {
  std::string solver;                // train: the solver's prototxt
  std::string model;                 // test, time: the net's prototxt
  std::string phase;                 // time: TRAIN or TEST; empty: TRAIN
  std::string snapshot;              // train: .solverstate to resume from
  std::vector<std::string> weights;  // .caffemodel files
  int iterations = 50;               // test, time
  std::string gpu;                   // comma-separated ids, or "all"
  int level = 0;
  std::vector<std::string> stages;
  std::string sigint_effect = "stop";
  std::string sighup_effect = "snapshot";
  int threads = 0;  // compute threads; 0: one per core
  settings::Settings settings;
};

}  // namespace hearth::trainer
