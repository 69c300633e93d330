#pragma once

#include <functional>
#include <utility>

#include "hearth/caffe/solver/solver_observer.h"

namespace hearth::caffe {

// An observer for tests that calls a function after each iteration.
class IterationObserver final : public SolverObserver {
 public:
  using Call = std::function<void(const IterationReport&)>;
  explicit IterationObserver(Call call) : call_(std::move(call)) {}

  void OnIteration(const IterationReport& report) override { call_(report); }

 private:
  const Call call_;
};

}  // namespace hearth::caffe
