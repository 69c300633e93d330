// What the flags of the caffe program say.
#pragma once

#include <string>
#include <vector>

#include "hearth/settings/settings.h"

namespace hearth::trainer {

struct LocalOptions {
  std::string solver;                // train: the solver's prototxt
  std::string model;                 // test, time: the net's prototxt
  std::string phase;                 // time: TRAIN or TEST; TRAIN where empty
  std::string snapshot;              // train: .solverstate to resume from
  std::vector<std::string> weights;  // .caffemodel files
  int iterations = 50;               // test, time
  std::string gpu;                   // ids by comma, or "all"
  int level = 0;
  std::vector<std::string> stages;
  std::string sigint_effect = "stop";
  std::string sighup_effect = "snapshot";
  int threads = 0;  // compute threads; 0: one per core
  settings::Settings settings;
};

}  // namespace hearth::trainer
