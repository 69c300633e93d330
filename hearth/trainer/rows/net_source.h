// The nets of a job: the prototxts that came with it, and the rows that feed them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/net/net_context.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/trainer/job/job.h"

namespace hearth::trainer {

// Returns the solver with the job's net inlined, so that nothing is read from disk. If the job has
// a model, snapshots are written to the model's folder.
caffe::SolverParameter SolverOf(const Job& job);

// Returns the TEST net: the first test net of the solver or, if the job has no solver, the job's
// net. A solver must have a test_iter.
caffe::NetParameter TestNetOf(const Job& job);

// The last minibatch of a net that is fed by rows; empty for other nets.
const dataset::Minibatch& LastRows(const caffe::Net& net);

// Returns a function for NetContext::open_source that returns `source` for the net's input layer.
// It throws kInvalidArgument if called for a second layer, or if `source` is null.
std::function<std::shared_ptr<dataset::MinibatchSource>(const caffe::LayerParameter&)> OpenOnce(
    std::shared_ptr<dataset::MinibatchSource> source, std::string stream_name);

}  // namespace hearth::trainer
