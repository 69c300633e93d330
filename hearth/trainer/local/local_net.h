#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hearth/caffe/net/net.h"
#include "hearth/trainer/local/local_options.h"
#include "hearth/trainer/local/local_rows.h"
#include "hearth/trainer/rows/invalid_rows.h"

namespace hearth::trainer {

// Returns options.threads or, if that is 0, the number of cores.
int ComputeThreads(const LocalOptions& options);
// Folder for spooled rows.
std::string TemporaryFolder();

// A net that runs on this machine outside of a training, with the rows that feed it.
class LocalNet {
 public:
  // Builds options.model for `phase` with the options' level, stages and weights, and sets the
  // number of compute threads. Throws hearth::Error.
  LocalNet(const LocalOptions& options, caffe::Phase phase, bool runs_backward);

  caffe::Net& net() { return *net_; }

  // Reads the next minibatch and returns its number of rows; starts over at the end, as Caffe's
  // databases do. Returns 1 if no layer is fed by rows, so that each forward pass has the same
  // weight.
  int64_t Fetch();

 private:
  InvalidRows invalid_rows_;
  LocalRows rows_;  // outlives the net that reads them
  std::unique_ptr<caffe::Net> net_;
};

}  // namespace hearth::trainer
