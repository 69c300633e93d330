// The nets of a solver's prototxt, each with its state.
#pragma once

#include <memory>
#include <vector>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Exactly one of net, net_param, train_net, train_net_param must be set. Reads files.
NetParameter TrainNetOf(const SolverParameter& solver);

// Returns one net per test_iter, taken from test_net_param, then test_net, then the train net.
std::vector<NetParameter> TestNetsOf(const SolverParameter& solver);

// Builds one of them. `registry`: null for LayerRegistry::Default().
std::unique_ptr<Net> BuildNet(const NetParameter& param, NetContext context, Phase phase,
                              const LayerRegistry* registry);

}  // namespace hearth::caffe
