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

// The solver with the job's net inlined, so that nothing is read from disk, and with snapshots in
// the folder of the job's model if it has one.
caffe::SolverParameter SolverOf(const Job& job);

// The TEST net: the first that the solver tests or, without a solver, the job's own. The solver
// must have a test_iter.
caffe::NetParameter TestNetOf(const Job& job);

// The last minibatch of a fed net; empty for other nets.
const dataset::Minibatch& LastRows(const caffe::Net& net);

// An open_source that returns `source` for the one input layer of a net. Throws kInvalidArgument
// for a second one, or if there is no source.
std::function<std::shared_ptr<dataset::MinibatchSource>(const caffe::LayerParameter&)> OpenOnce(
    std::shared_ptr<dataset::MinibatchSource> source, std::string stream_name);

}  // namespace hearth::trainer
