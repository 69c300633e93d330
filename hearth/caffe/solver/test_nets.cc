#include "hearth/caffe/solver/test_nets.h"

#include <optional>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/net/debug_info.h"
#include "hearth/caffe/solver/net_outputs.h"
#include "hearth/caffe/solver/solver_nets.h"

namespace hearth::caffe {
namespace {

// Reads the next minibatch. If the epoch has ended, starts the next one.
std::optional<int64_t> FetchAround(Net& net) {
  std::optional<int64_t> rows = net.Fetch();
  if (rows && *rows == 0) {
    net.NextEpoch();
    rows = net.Fetch();
  }
  Require(!rows || *rows > 0, ErrorCode::kInvalidArgument, "test net '{}' has no rows", net.name());
  return rows;
}

}  // namespace

TestNets::TestNets(const SolverParameter& param, const SolverOptions& options, uint64_t seed)
    : param_(param), observer_(*options.observer) {
  if (options.validates || param.test_iter().empty()) return;
  Require(param.test_interval() > 0, ErrorCode::kInvalidArgument,
          "the solver has test_iter but no test_interval; set it, or remove test_iter");
  if (!options.is_root) return;
  NetContext context = options.test_context;
  if (!context.random) context.random = std::make_shared<Random>(seed);
  for (const NetParameter& net : TestNetsOf(param)) {
    nets_.push_back(BuildNet(net, context, TEST, options.registry));
    if (param.debug_info()) LogDebugInfo(*nets_.back(), [] { return true; });
  }
}

void TestNets::RunAll(int iteration, Net& trained) {
  for (size_t i = 0; i < nets_.size(); ++i) Run(i, iteration, trained);
}

void TestNets::Run(size_t index, int iteration, Net& trained) {
  log::Info("Iteration {}, Testing net (#{})", iteration, index);
  Net& net = *nets_[index];
  // ShareTrainedLayersWith() is called before each test, because it drops the other forms of the
  // weights that layers have cached.
  net.ShareTrainedLayersWith(trained);
  std::vector<double> sums;
  double loss = 0, weight = 0;
  for (int i = 0; i < param_.test_iter(static_cast<int>(index)); ++i) {
    if (observer_.TestIsInterrupted()) {
      log::Info("Test interrupted.");
      return;
    }
    // Minibatches are weighted by their number of rows, because the last one of an epoch may be
    // smaller. In Caffe, all minibatches have the same size.
    const auto part = static_cast<double>(FetchAround(net).value_or(1));
    loss += part * net.Forward();
    AddOutputs(net, part, &sums);
    weight += part;
  }
  if (weight == 0) return;
  if (param_.test_compute_loss()) log::Info("Test loss: {:g}", loss / weight);
  for (double& sum : sums) sum /= weight;
  LogOutputs("Test", net, sums);
  observer_.OnTest(index, net, sums);
}

}  // namespace hearth::caffe
