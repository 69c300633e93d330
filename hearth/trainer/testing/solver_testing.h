// For tests: solvers of a net without rows, as threads of this process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/thread.h"
#include "hearth/caffe/solver/solver.h"
#include "hearth/caffe/upgrade/net_file.h"
#include "hearth/collective/group.h"

namespace hearth::trainer {

// A net whose layer "ip" learns to map one constant to another; its output is "loss".
inline std::string ConstantNet() {
  return R"(name: "dummy"
    layer { name: "x" type: "DummyData" top: "x" top: "y"
      dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 }
        data_filler { type: "constant" value: 1 } data_filler { type: "constant" value: 2 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
      inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" top: "loss" })";
}

// A solver of ConstantNet; `more` contains additional fields of the solver's prototxt.
inline std::unique_ptr<caffe::Solver> ConstantSolver(const std::string& more = "",
                                                     caffe::SolverOptions options = {}) {
  const std::string seed = more.find("random_seed") == more.npos ? "random_seed: 7 " : "";
  caffe::SolverParameter param = caffe::ParseSolver(
      "base_lr: 0.01 lr_policy: 'fixed' momentum: 0.9 max_iter: 4 snapshot_after_train: false " +
          seed + more,
      "solver");
  *param.mutable_net_param() = caffe::ParseNet(ConstantNet(), "net");
  return std::make_unique<caffe::Solver>(param, std::move(options));
}

// Runs `body` as each rank of a group, in threads of this process. Throws the error of a rank that
// failed. A rank that returns leaves the group.
inline void RunGroupThreads(int ranks, const std::function<void(collective::Group&)>& body) {
  auto groups = collective::Group::ConnectThreads(ranks);
  std::vector<Thread> threads;
  for (auto& group : groups) {
    threads.emplace_back("rank", [&body, &group] {
      const std::unique_ptr<collective::Group> own = std::move(group);
      body(*own);
    });
  }
  for (Thread& thread : threads) thread.Join();
}

}  // namespace hearth::trainer
