#include "hearth/caffe/kernels/channels_last_pooling.h"

#include <algorithm>
#include <cfloat>
#include <cstring>

#include "hearth/base/for_each_cpu.h"

namespace hearth::caffe {
namespace {

// Vectors that hold the channels that are processed together for one window, in registers. The
// compiler splits a vector that is wider than the CPU's.
template <int kWidth>
struct Lanes {
  // These are typedefs, because GCC drops the attribute vector_size from an alias (`using`).
  typedef float Floats __attribute__((vector_size(kWidth * sizeof(float))));
  typedef int32_t Ints __attribute__((vector_size(kWidth * sizeof(int32_t))));
  static_assert(sizeof(Floats) == kWidth * sizeof(float) && sizeof(Ints) == sizeof(Floats));
};

// Uses memcpy, which compiles to one unaligned load or store, because a block may begin at any
// multiple of four bytes and a cast would break the aliasing rules.
template <typename Vector, typename Value>
HEARTH_INLINE void Load(Vector& into, const Value* from) {
  std::memcpy(&into, from, sizeof(into));
}
template <typename Vector, typename Value>
HEARTH_INLINE void Store(Value* to, const Vector& from) {
  std::memcpy(to, &from, sizeof(from));
}

}  // namespace

struct ChannelsLastPooling::Block {
  PoolingAxis::Span rows, columns;
  int64_t width;     // of the image, in pixels
  int64_t channels;  // per pixel
  int64_t channel;   // the first channel of this block
  int64_t out;       // index of the block's first output value
  float divisor;     // divisor of an average

  // Calls f(pixel, index of the block's first value in this pixel) for each pixel of the window.
  template <typename Function>
  HEARTH_INLINE void ForEachPixel(Function f) const {
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const int64_t pixel = i * width + j;
        f(static_cast<int32_t>(pixel), pixel * channels + channel);
      }
    }
  }
};

template <typename Function>
HEARTH_INLINE void ChannelsLastPooling::ForEachBlock(Function f) const {
  Block block{{}, {}, columns.inputs, channels, 0, 0, 1};
  for (int64_t oh = 0; oh < rows.outputs; ++oh) {
    block.rows = rows.Clipped(oh);
    for (int64_t ow = 0; ow < columns.outputs; ++ow) {
      block.columns = columns.Clipped(ow);
      block.divisor = PoolingAxis::Divisor(rows, oh, columns, ow);
      // Processes as many blocks of 16 channels as possible, then blocks of 4, then single
      // channels.
      const auto run = [&](auto lanes, int64_t width) HEARTH_INLINE_LAMBDA {
        while (block.channel + width <= channels) {
          f(block, lanes);
          block.channel += width;
          block.out += width;
        }
      };
      block.channel = 0;
      run(Lanes<16>(), 16);
      run(Lanes<4>(), 4);
      run(Lanes<1>(), 1);
    }
  }
}

HEARTH_FOR_EACH_CPU void ChannelsLastPooling::Max(const float* x, float* y, int32_t* chosen) const {
  ForEachBlock([&](const Block& block, auto lanes) HEARTH_INLINE_LAMBDA {
    typename decltype(lanes)::Floats best = {}, value;
    typename decltype(lanes)::Ints where = {};
    // `best` and `where` are vectors of zeros here. A vector cannot be constructed from a scalar,
    // but subtracting a scalar applies to all lanes.
    best -= FLT_MAX;
    where -= 1;
    block.ForEachPixel([&](int32_t pixel, int64_t at) HEARTH_INLINE_LAMBDA {
      Load(value, x + at);
      // `better` is false for equal values, so the first one is chosen, and for NaN, which is never
      // chosen.
      const auto better = value > best;
      best = better ? value : best;
      where = better ? pixel - decltype(where){} : where;
    });
    Store(y + block.out, best);
    Store(chosen + block.out, where);
  });
}

// Visits each window again and compares positions in all lanes, because writing to one address per
// channel would not vectorize. Windows may overlap, so their gradients are added.
HEARTH_FOR_EACH_CPU void ChannelsLastPooling::GradientAt(const float* dy, const int32_t* chosen,
                                                         float* dx) const {
  std::fill_n(dx, inputs(), 0.f);
  ForEachBlock([&](const Block& block, auto lanes) HEARTH_INLINE_LAMBDA {
    typename decltype(lanes)::Floats gradient, sum;
    typename decltype(lanes)::Ints where;
    Load(gradient, dy + block.out);
    Load(where, chosen + block.out);
    block.ForEachPixel([&](int32_t pixel, int64_t at) HEARTH_INLINE_LAMBDA {
      Load(sum, dx + at);
      sum += where == pixel ? gradient : decltype(gradient){};
      Store(dx + at, sum);
    });
  });
}

HEARTH_FOR_EACH_CPU void ChannelsLastPooling::Average(const float* x, float* y) const {
  ForEachBlock([&](const Block& block, auto lanes) HEARTH_INLINE_LAMBDA {
    typename decltype(lanes)::Floats sum = {}, value;
    block.ForEachPixel([&](int32_t, int64_t at) HEARTH_INLINE_LAMBDA {
      Load(value, x + at);
      sum += value;
    });
    sum /= block.divisor;
    Store(y + block.out, sum);
  });
}

HEARTH_FOR_EACH_CPU void ChannelsLastPooling::AverageGradient(const float* dy, float* dx) const {
  std::fill_n(dx, inputs(), 0.f);
  ForEachBlock([&](const Block& block, auto lanes) HEARTH_INLINE_LAMBDA {
    typename decltype(lanes)::Floats gradient, sum;
    Load(gradient, dy + block.out);
    gradient *= 1 / block.divisor;
    block.ForEachPixel([&](int32_t, int64_t at) HEARTH_INLINE_LAMBDA {
      Load(sum, dx + at);
      sum += gradient;
      Store(dx + at, sum);
    });
  });
}

}  // namespace hearth::caffe
