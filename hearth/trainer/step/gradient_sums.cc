#include "hearth/trainer/step/gradient_sums.h"

namespace hearth::trainer {
namespace {

// The control values are chunk 0. Buckets are launched from the back, so this chunk is reduced
// last, when the weight of this rank is known.
constexpr size_t kControlChunks = 1;

}  // namespace

caffe::Tensor HostGradientSum::AllocateDiff(const caffe::ParamLayout& layout) {
  std::vector<size_t> sizes = PaddedSizes(layout);
  sizes.insert(sizes.begin(), static_cast<size_t>(kControls));
  const auto floats = static_cast<size_t>(kControls + layout.size);
  auto* const buffer = static_cast<float*>(group().Allocate(floats * sizeof(float)));
  set_controls(buffer);
  reducer_ = MakeReducer(buffer, sizes, collective::Memory::kHost);
  return caffe::Tensor::Over(buffer + kControls, {layout.size});
}

void HostGradientSum::GradientReady(size_t index) { reducer_->Ready(index + kControlChunks); }

void HostGradientSum::WaitForSum(Deadline deadline) { reducer_->Wait(deadline); }

caffe::Tensor DeviceGradientSum::AllocateDiff(const caffe::ParamLayout& layout) {
  gradients_ = PaddedSizes(layout);
  AllocateControls();
  return caffe::Tensor::Zeros({layout.size});
}

bool DeviceGradientSum::TakeDeviceDiff(const caffe::Tensor& diff) {
  diff_ = diff;
  reducer_ = MakeReducer(diff_.data_ptr(), gradients_, collective::Memory::kDevice);
  return true;
}

void DeviceGradientSum::GradientReady(size_t index) { reducer_->Ready(index); }

// The control values need a second, small operation, because they are in host memory and the
// gradients are not.
void DeviceGradientSum::WaitForSum(Deadline deadline) {
  reducer_->Wait(deadline);
  SumControls(deadline);
}

}  // namespace hearth::trainer
