// Sums of the gradients of all ranks, computed while backward still runs.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "hearth/trainer/step/distributed_sync.h"

namespace hearth::trainer {

// Sums gradients in host memory, and the control values in the same all-reduce.
class HostGradientSum final : public DistributedSync {
 public:
  HostGradientSum(collective::Group& group, double timeout_s) : DistributedSync(group, timeout_s) {}

  caffe::Tensor AllocateDiff(const caffe::ParamLayout& layout) override;
  void GradientReady(size_t index) override;

 private:
  void WaitForSum(Deadline deadline) override;

  std::unique_ptr<collective::BucketReducer> reducer_;
};

// Sums gradients on the ranks' GPUs, on which all nets compute.
class DeviceGradientSum final : public DistributedSync {
 public:
  DeviceGradientSum(collective::Group& group, double timeout_s)
      : DistributedSync(group, timeout_s) {}

  caffe::Tensor AllocateDiff(const caffe::ParamLayout& layout) override;
  bool TakeDeviceDiff(const caffe::Tensor& diff) override;
  void GradientReady(size_t index) override;

 private:
  void WaitForSum(Deadline deadline) override;

  std::vector<size_t> gradients_;  // number of floats of each parameter, with padding
  caffe::Tensor diff_;
  std::unique_ptr<collective::BucketReducer> reducer_;
};

}  // namespace hearth::trainer
