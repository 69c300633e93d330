#pragma once

#include <cstdint>
#include <vector>

namespace hearth::caffe {

// Offsets of the learnable parameters in a net's flat buffers. Weights, gradients and solver
// history use the same layout, so gradients can be reduced across ranks without a copy.
struct ParamLayout {
  // The position of one parameter in each buffer.
  struct Slice {
    int64_t offset;  // in floats, a multiple of kAlignment
    int64_t count;
  };
  static constexpr int64_t kAlignment = 16;  // in floats: one cache line

  std::vector<Slice> slices;  // one per learnable parameter, in the order of the net
  int64_t size = 0;           // total number of floats; the gaps between slices are always zero

  void Append(int64_t count) {
    slices.push_back({size, count});
    size += (count + kAlignment - 1) / kAlignment * kAlignment;
  }
};

}  // namespace hearth::caffe
