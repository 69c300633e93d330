#include "hearth/caffe/upgrade/net_file.h"

#include <array>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/caffe/upgrade/upgrade_steps.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

// An empty file is a valid empty message, but it is always a mistake.
void RequireText(std::string_view text, const std::string& name) {
  Require(text.find_first_not_of(" \t\r\n") != std::string_view::npos, ErrorCode::kInvalidArgument,
          "{} is empty; give the prototxt of a net or solver", name);
}

template <typename Message>
Message Parse(std::string_view text, const std::string& name,
              bool (*upgrade)(Message*, const std::string&)) {
  RequireText(text, name);
  Message message;
  ParseText(text, name, &message);
  upgrade(&message, name);
  return message;
}

}  // namespace

// UpgradeOldLayers must be first, because the other steps only process `layer`.
bool UpgradeNet(NetParameter* net, const std::string& name) {
  bool upgraded = UpgradeOldLayers(net, name);
  upgraded |= UpgradeInputs(net, name);
  upgraded |= UpgradeBatchNorms(net);
  return upgraded;
}

bool UpgradeSolver(SolverParameter* solver, const std::string& name) {
  // The names of the types, indexed by caffe.proto's SolverType.
  constexpr std::array<const char*, 6> kTypes = {"SGD",     "Nesterov", "AdaGrad",
                                                 "RMSProp", "AdaDelta", "Adam"};
  bool upgraded = solver->has_solver_type();
  if (upgraded) {
    Require(!solver->has_type(), ErrorCode::kInvalidArgument,
            "{}: it has both type and the old solver_type; remove solver_type", name);
    solver->set_type(kTypes[solver->solver_type()]);
    solver->clear_solver_type();
  }
  // Nets inside the solver may be in an old format, too.
  if (solver->has_net_param()) {
    upgraded |= UpgradeNet(solver->mutable_net_param(), name + " net_param");
  }
  if (solver->has_train_net_param()) {
    upgraded |= UpgradeNet(solver->mutable_train_net_param(), name + " train_net_param");
  }
  for (NetParameter& net : *solver->mutable_test_net_param()) {
    upgraded |= UpgradeNet(&net, name + " test_net_param");
  }
  return upgraded;
}

NetParameter ParseNet(std::string_view text, const std::string& name) {
  return Parse(text, name, UpgradeNet);
}

SolverParameter ParseSolver(std::string_view text, const std::string& name) {
  return Parse(text, name, UpgradeSolver);
}

NetParameter ReadNet(const std::string& uri) { return ParseNet(storage::ReadFile(uri), uri); }

SolverParameter ReadSolver(const std::string& uri) {
  return ParseSolver(storage::ReadFile(uri), uri);
}

}  // namespace hearth::caffe
