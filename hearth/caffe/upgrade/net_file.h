// Reads prototxt files of nets and solvers and upgrades them to the current format.
#pragma once

#include <string>
#include <string_view>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Parse a prototxt and upgrade it: nets in the V0 and V1 formats, nets with `input` fields, and a
// solver's solver_type, which becomes its type. `name` is used in error messages.
NetParameter ParseNet(std::string_view text, const std::string& name);
SolverParameter ParseSolver(std::string_view text, const std::string& name);

NetParameter ReadNet(const std::string& uri);
SolverParameter ReadSolver(const std::string& uri);

// Perform the upgrades of ParseNet and ParseSolver in place. Return false if there was nothing to
// upgrade.
bool UpgradeNet(NetParameter* net, const std::string& name);
bool UpgradeSolver(SolverParameter* solver, const std::string& name);

}  // namespace hearth::caffe
