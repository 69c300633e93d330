// Test helpers that create and compare host tensors.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/tensor.h"

namespace hearth::caffe {

// Independent, normally distributed values, which are the same in every run.
inline Tensor Randn(const Shape& sizes) {
  static std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  const Tensor tensor = Tensor::Empty(sizes);
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor.data_ptr()[i] = normal(engine);
  return tensor;
}

inline Tensor Full(const Shape& sizes, double value) {
  const Tensor tensor = Tensor::Empty(sizes);
  return tensor.fill_(value);
}

inline Tensor On(const Device& device, const Tensor& values) {
  return Tensor::ZerosOn(device, values.sizes()).copy_(values);
}

// 0, 1, 2, ...
inline Tensor Arange(int64_t count) {
  const Tensor tensor = Tensor::Empty({count});
  for (int64_t i = 0; i < count; ++i) tensor.data_ptr()[i] = static_cast<float>(i);
  return tensor;
}

// Returns a + factor * b. `b` may be broadcast.
inline Tensor Sum(const Tensor& a, const Tensor& b, double factor = 1) {
  return a.clone().add_(b, factor);
}

inline Tensor Scaled(const Tensor& tensor, double factor) { return tensor.clone().mul_(factor); }

// The values in row-major order.
inline std::vector<float> ListOf(const Tensor& tensor) {
  const Tensor dense =
      (tensor.on_host() ? tensor : Tensor::Zeros(tensor.sizes()).copy_(tensor)).contiguous();
  return {dense.data_ptr(), dense.data_ptr() + dense.numel()};
}

inline double TotalOf(const Tensor& tensor) {
  const std::vector<float> values = ListOf(tensor);
  return std::accumulate(values.begin(), values.end(), 0.0);
}

inline double LargestMagnitude(const Tensor& tensor) {
  double largest = 0;
  for (const float value : ListOf(tensor)) largest = std::max(largest, std::fabs(double{value}));
  return largest;
}

inline bool Equal(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && ListOf(a) == ListOf(b);
}

inline bool AllClose(const Tensor& a, const Tensor& b, double relative = 1e-5,
                     double absolute = 1e-8) {
  const std::vector<float> x = ListOf(a), y = ListOf(b);
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(std::fabs(double{x[i]} - y[i]) <= absolute + relative * std::fabs(double{y[i]}))) {
      return false;
    }
  }
  return true;
}

// Concatenates tensors as flat lists.
inline Tensor Joined(const std::vector<Tensor>& parts) {
  std::vector<float> values;
  for (const Tensor& part : parts) {
    const std::vector<float> more = ListOf(part);
    values.insert(values.end(), more.begin(), more.end());
  }
  return Tensor::Copy(values);
}

}  // namespace hearth::caffe
