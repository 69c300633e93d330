// A net on this machine, outside of a training, with the rows that feed it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hearth/caffe/net/net.h"
#include "hearth/trainer/bad_rows.h"
#include "hearth/trainer/local_options.h"
#include "hearth/trainer/local_rows.h"

namespace hearth::trainer {

// The threads that options.threads asks for: one per core where it is 0.
int ComputeThreads(const LocalOptions& options);
// Where rows are spooled.
std::string TemporaryFolder();

class LocalNet {
 public:
  // Builds options.model for `phase` with the options' level, stages and weights, and sets the
  // number of compute threads. Throws hearth::Error.
  LocalNet(const LocalOptions& options, caffe::Phase phase, bool runs_backward);

  caffe::Net& net() { return *net_; }

  // Takes the next minibatch and returns its rows; they start over when they are used up, as
  // Caffe's databases do. 1 where no layer is fed by rows: each forward counts alike.
  int64_t Fetch();

 private:
  BadRows bad_rows_;
  LocalRows rows_;  // outlives the net that reads them
  std::unique_ptr<caffe::Net> net_;
};

}  // namespace hearth::trainer
