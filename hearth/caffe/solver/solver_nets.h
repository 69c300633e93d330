// The nets that a solver's prototxt names, each with the state that it runs in.
#pragma once

#include <string>
#include <vector>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Exactly one of net, net_param, train_net, train_net_param must be given. Files are read.
NetParameter TrainNetOf(const SolverParameter& solver);

// One net per test_iter: test_net_param, then test_net, then the train net's own file for the rest.
std::vector<NetParameter> TestNetsOf(const SolverParameter& solver);

}  // namespace hearth::caffe
