// Prototxt files of nets and solvers, brought to the current format.
#pragma once

#include <string>
#include <string_view>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// `name` stands in error messages. Nets in the V0 and V1 formats and those with `input` fields are
// brought to today's, and a solver's solver_type becomes type.
NetParameter ParseNet(std::string_view text, const std::string& name);
SolverParameter ParseSolver(std::string_view text, const std::string& name);

NetParameter ReadNet(const std::string& uri);
SolverParameter ReadSolver(const std::string& uri);

// Does the upgrades above, in place; false where there was nothing to do.
bool UpgradeNet(NetParameter* net, const std::string& name);
bool UpgradeSolver(SolverParameter* solver, const std::string& name);

}  // namespace hearth::caffe
