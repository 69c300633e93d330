// The nets that a solver's prototxt configures, each with its state.
#pragma once

#include <memory>
#include <vector>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Returns the train net. Exactly one of net, net_param, train_net, train_net_param must be set.
// Reads files.
NetParameter TrainNetOf(const SolverParameter& solver);

// Returns one net per test_iter: first those of test_net_param, then those of test_net, then the
// net for both phases.
std::vector<NetParameter> TestNetsOf(const SolverParameter& solver);

// Builds one of the nets that the functions above return. If `registry` is null, uses
// LayerRegistry::Default().
std::unique_ptr<Net> BuildNet(const NetParameter& param, NetContext context, Phase phase,
                              const LayerRegistry* registry);

}  // namespace hearth::caffe
