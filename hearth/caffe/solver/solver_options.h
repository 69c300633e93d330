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
  NetContext train_context;  // the solver sets phase and, from the seed, a missing `random`
  NetContext test_context;   // for the solver's test nets
  std::shared_ptr<GradientSync> sync;  // empty: LocalSync
  SolverObserver* observer = nullptr;  // null: none; must outlive the solver
  // Path of the prototxt: determines the default snapshot_prefix
  std::string solver_file;
  bool is_root = true;  // logs, tests, writes snapshots; false on all but one of several solvers
  uint64_t seed = 0;    // used if the prototxt has no random_seed
  uint64_t rank = 0;    // mixed into the seed: augmentation and dropout differ by rank
  // Number of ranks that share the sync; a snapshot's feed position holds only for it
  int ranks = 1;
  // Distinguishes the snapshots of runs with the same prefix; empty: a new name
  std::string run;
  bool shuffles_first_epoch = false;        // by the seed; otherwise only later epochs are shuffled
  bool stop_on_nan = false;                 // a non-finite loss is an error; otherwise a warning
  bool validates = false;                   // the observer validates; the solver has no test nets
  const LayerRegistry* registry = nullptr;  // null: LayerRegistry::Default()
};

}  // namespace hearth::caffe
