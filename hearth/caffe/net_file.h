// Prototxt files of nets and solvers, brought to the current format.
#pragma once

#include <string>
#include <string_view>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// `name` stands in error messages. Legacy `input` and `input_dim` fields become Input layers,
// solver_type becomes type; V0 and V1 `layers` throw kUnimplemented.
NetParameter ParseNet(std::string_view text, const std::string& name);
SolverParameter ParseSolver(std::string_view text, const std::string& name);

NetParameter ReadNet(const std::string& uri);
SolverParameter ReadSolver(const std::string& uri);

// Does the upgrades above, in place.
void UpgradeNet(NetParameter* net, const std::string& name);
void UpgradeSolver(SolverParameter* solver, const std::string& name);

}  // namespace hearth::caffe
