#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/solver/gradient_sync.h"
#include "hearth/caffe/solver/solver_observer.h"

namespace hearth::caffe {

// Options of a solver, besides its prototxt.
struct SolverOptions {
  NetContext train_context;  // the solver sets phase and, if missing, `random` from the seed
  NetContext test_context;   // for the solver's test nets
  std::shared_ptr<GradientSync> sync;  // if empty, LocalSync
  SolverObserver* observer = nullptr;  // may be null; must outlive the solver
  // Path of the prototxt, which determines the default snapshot_prefix.
  std::string solver_file;
  bool is_root = true;  // the root logs, tests and writes snapshots; exactly one solver is the root
  uint64_t seed = 0;    // used if the prototxt has no random_seed
  uint64_t rank =
      0;  // combined with the seed, so that augmentation and dropout differ between ranks
  // Number of ranks that share the sync. The feed position in a snapshot is valid only for this
  // number.
  int ranks = 1;
  // Distinguishes the snapshots of runs with the same prefix. If empty, the solver chooses a name.
  std::string run;
  bool shuffles_first_epoch = false;  // by the seed; if false, only later epochs are shuffled
  bool stop_on_nan = false;           // a non-finite loss is an error instead of a warning
  bool validates = false;             // the observer validates, so the solver has no test nets
  const LayerRegistry* registry = nullptr;  // null: LayerRegistry::Default()
};

}  // namespace hearth::caffe
