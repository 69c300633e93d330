#include "hearth/caffe/solver/solver_nets.h"

#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

void MergeState(const NetState& from, NetState* to) {
  if (from.has_phase()) to->set_phase(from.phase());
  if (from.has_level()) to->set_level(from.level());
  for (const std::string& stage : from.stage()) to->add_stage(stage);
}

// Merges, in this order, the phase, the net's own state and the solver's state, as Caffe's
// Solver::InitTrainNet does. Each state overrides fields of the previous ones and adds its stages.
NetParameter WithState(NetParameter net, Phase phase, const NetState& given) {
  NetState state;
  state.set_phase(phase);
  MergeState(net.state(), &state);
  MergeState(given, &state);
  *net.mutable_state() = state;
  return net;
}

NetParameter SharedNetOf(const SolverParameter& solver) {
  return solver.has_net_param() ? solver.net_param() : ReadNet(solver.net());
}

}  // namespace

NetParameter TrainNetOf(const SolverParameter& solver) {
  const int given = solver.has_net() + solver.has_net_param() + solver.has_train_net() +
                    solver.has_train_net_param();
  Require(given == 1, ErrorCode::kInvalidArgument,
          "the solver must name its net by exactly one of net, net_param, train_net and "
          "train_net_param, found {} of them",
          given);
  NetParameter net = solver.has_train_net_param() ? solver.train_net_param()
                     : solver.has_train_net()     ? ReadNet(solver.train_net())
                                                  : SharedNetOf(solver);
  return WithState(std::move(net), TRAIN, solver.train_state());
}

std::vector<NetParameter> TestNetsOf(const SolverParameter& solver) {
  std::vector<NetParameter> nets(solver.test_net_param());
  for (const std::string& file : solver.test_net()) nets.push_back(ReadNet(file));
  const auto iterations = solver.test_iter().size();
  // `net` or `net_param` is for both phases, so it also serves each test_iter without a test net.
  const bool shared = solver.has_net() || solver.has_net_param();
  Require(
      shared ? nets.size() <= iterations : nets.size() == iterations, ErrorCode::kInvalidArgument,
      "the solver has {} test_iter for {} test net(s); set one for each", iterations, nets.size());
  // Adds the shared net for each test_iter that remains after test_net_param and test_net.
  while (nets.size() < iterations) nets.push_back(SharedNetOf(solver));
  Require(solver.test_state().empty() || solver.test_state().size() == nets.size(),
          ErrorCode::kInvalidArgument,
          "the solver has {} test_state for {} test net(s); set one for each or none",
          solver.test_state().size(), nets.size());
  for (size_t i = 0; i < nets.size(); ++i) {
    const bool has_state = i < solver.test_state().size();
    nets[i] = WithState(std::move(nets[i]), TEST, has_state ? solver.test_state()[i] : NetState());
  }
  return nets;
}

std::unique_ptr<Net> BuildNet(const NetParameter& param, NetContext context, Phase phase,
                              const LayerRegistry* registry) {
  context.phase = phase;
  return std::make_unique<Net>(param, context, registry ? *registry : LayerRegistry::Default());
}

}  // namespace hearth::caffe
