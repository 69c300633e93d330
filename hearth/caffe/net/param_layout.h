#pragma once

#include <cstdint>
#include <vector>

namespace hearth::caffe {

// Offsets of the learnable parameters in a net's flat buffers. Weights, gradients and solver
// history share one layout, so that a gradient can be reduced across ranks without a copy.
struct ParamLayout {
  // Position of one parameter.
  struct Slice {
    int64_t offset;  // in floats, a multiple of kAlignment
    int64_t count;
  };
  static constexpr int64_t kAlignment = 16;  // floats: one cache line

  std::vector<Slice> slices;  // one per learnable parameter, in the order of the net
  int64_t size = 0;           // total floats; the gaps between slices are always zero

  void Append(int64_t count) {
    slices.push_back({size, count});
    size += (count + kAlignment - 1) / kAlignment * kAlignment;
  }
};

}  // namespace hearth::caffe
