#include "hearth/caffe/tensor/random.h"

namespace hearth::caffe {

// SplitMix64's finalizer, which makes adjacent seeds and streams independent.
uint64_t MixSeed(uint64_t seed, uint64_t stream) {
  // Uses stream + 1, because the finalizer maps 0 to 0.
  uint64_t z = seed + (stream + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

}  // namespace hearth::caffe
