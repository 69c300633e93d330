#pragma once

#include <cstdint>
#include <random>

namespace hearth::caffe {

// The random stream of one net. Not thread-safe.
class Random {
 public:
  // To give each rank a different stream, mix the rank into the seed: Random(MixSeed(seed, rank)).
  explicit Random(uint64_t seed) : engine_(seed) {}

  std::mt19937_64& engine() { return engine_; }
  float Uniform(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(engine_);
  }
  float Gaussian(float mean, float std) {
    return std::normal_distribution<float>(mean, std)(engine_);
  }
  // Uniform in [0, n).
  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(engine_); }

 private:
  std::mt19937_64 engine_;
};

uint64_t MixSeed(uint64_t seed, uint64_t stream);

}  // namespace hearth::caffe
