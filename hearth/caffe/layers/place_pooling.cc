#include "hearth/caffe/layers/place_pooling.h"

#include <algorithm>
#include <cfloat>

#include "hearth/base/for_each_cpu.h"

namespace hearth::caffe {

template <typename Function, typename After>
HEARTH_INLINE void PlacePooling::ForEachPlace(Function f, After after) const {
  int64_t out = 0;
  for (int64_t oh = 0; oh < rows.outputs; ++oh) {
    const PoolingAxis::Span v = rows.Clipped(oh);
    for (int64_t ow = 0; ow < columns.outputs; ++ow, out += channels) {
      const PoolingAxis::Span h = columns.Clipped(ow);
      const float divisor = PoolingAxis::Divisor(rows, oh, columns, ow);
      for (int64_t i = v.begin; i < v.end; ++i) {
        for (int64_t j = h.begin; j < h.end; ++j) f(out, i * columns.inputs + j, divisor);
      }
      after(out, divisor);
    }
  }
}

HEARTH_FOR_EACH_CPU void PlacePooling::Max(const float* x, float* y, int32_t* chosen) const {
  const int64_t count = rows.outputs * columns.outputs * channels;
  std::fill_n(y, count, -FLT_MAX);
  std::fill_n(chosen, count, -1);
  ForEachPlace(
      [&](int64_t out, int64_t place, float) HEARTH_INLINE_LAMBDA {
        const float* from = x + place * channels;
        float* best = y + out;
        int32_t* where = chosen + out;
        const auto here = static_cast<int32_t>(place);
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) {
          const bool better = from[c] > best[c];
          best[c] = better ? from[c] : best[c];
          where[c] = better ? here : where[c];
        }
      },
      [](int64_t, float) HEARTH_INLINE_LAMBDA {});
}

HEARTH_FOR_EACH_CPU void PlacePooling::MaxGradient(const float* dy, const int32_t* chosen,
                                                   float* dx) const {
  std::fill_n(dx, rows.inputs * columns.inputs * channels, 0.f);
  ForEachPlace(
      [&](int64_t out, int64_t place, float) HEARTH_INLINE_LAMBDA {
        float* to = dx + place * channels;
        const float* from = dy + out;
        const int32_t* where = chosen + out;
        const auto here = static_cast<int32_t>(place);
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) to[c] += where[c] == here ? from[c] : 0.f;
      },
      [](int64_t, float) HEARTH_INLINE_LAMBDA {});
}

HEARTH_FOR_EACH_CPU void PlacePooling::Average(const float* x, float* y) const {
  std::fill_n(y, rows.outputs * columns.outputs * channels, 0.f);
  ForEachPlace(
      [&](int64_t out, int64_t place, float) HEARTH_INLINE_LAMBDA {
        const float* from = x + place * channels;
        float* sum = y + out;
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) sum[c] += from[c];
      },
      [&](int64_t out, float divisor) HEARTH_INLINE_LAMBDA {
        for (int64_t c = 0; c < channels; ++c) y[out + c] /= divisor;
      });
}

HEARTH_FOR_EACH_CPU void PlacePooling::AverageGradient(const float* dy, float* dx) const {
  std::fill_n(dx, rows.inputs * columns.inputs * channels, 0.f);
  ForEachPlace(
      [&](int64_t out, int64_t place, float divisor) HEARTH_INLINE_LAMBDA {
        float* to = dx + place * channels;
        const float share = 1 / divisor;
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) to[c] += dy[out + c] * share;
      },
      [](int64_t, float) HEARTH_INLINE_LAMBDA {});
}

}  // namespace hearth::caffe
