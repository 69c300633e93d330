#include "hearth/caffe/kernels/lstm_step.h"

#include <algorithm>
#include <bit>

#include "hearth/base/for_each_cpu.h"

namespace hearth::caffe {
namespace {

// e^x, off by 1e-7 of its value; std::exp keeps compilers from making vector code of a loop.
HEARTH_INLINE float Exp(float x) {
  constexpr float kLog2E = 1.44269504f;
  // ln 2 as a sum: the first part has few bits, so that whole numbers times it are exact.
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kToWhole = 12582912.f;  // 1.5 * 2^23: what is added to it loses its fraction
  x = std::min(std::max(x, -87.f), 88.f);
  const float shifted = x * kLog2E + kToWhole;
  const float n = shifted - kToWhole;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float series = 1.f / 5040;
  series = series * r + 1.f / 720;
  series = series * r + 1.f / 120;
  series = series * r + 1.f / 24;
  series = series * r + 1.f / 6;
  series = series * r + 0.5f;
  series = series * r + 1.f;
  series = series * r + 1.f;
  // n stands in the low bits of `shifted`; as an exponent it makes 2^n.
  return series * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) << 23) + 0x3F800000u);
}

HEARTH_INLINE float SigmoidOf(float x) { return 1.f / (1.f + Exp(-x)); }
HEARTH_INLINE float Tanh(float x) { return 2.f * SigmoidOf(2.f * x) - 1.f; }

HEARTH_FOR_EACH_CPU void ForwardRow(const LstmStep& step, float cont) {
  float *i = step.gates, *f = i + step.size, *o = f + step.size, *g = o + step.size;
  const float* before = step.before;
  float *cells = step.cells, *squashed = step.squashed, *hidden = step.hidden;
#pragma GCC ivdep
  for (int64_t j = 0; j < step.size; ++j) {
    i[j] = SigmoidOf(i[j]);
    f[j] = cont * SigmoidOf(f[j]);
    o[j] = SigmoidOf(o[j]);
    g[j] = Tanh(g[j]);
    cells[j] = f[j] * before[j] + i[j] * g[j];
    squashed[j] = Tanh(cells[j]);
    hidden[j] = o[j] * squashed[j];
  }
}

HEARTH_FOR_EACH_CPU void BackwardRow(const LstmStep& step, const float* d_hidden, float* d_cells,
                                     float* d_gates) {
  const float *i = step.gates, *f = i + step.size, *o = f + step.size, *g = o + step.size;
  float *di = d_gates, *df = di + step.size, *d_o = df + step.size, *dg = d_o + step.size;
  const float *before = step.before, *squashed = step.squashed;
#pragma GCC ivdep
  for (int64_t j = 0; j < step.size; ++j) {
    const float dh = d_hidden[j], t = squashed[j];
    const float dc = d_cells[j] + dh * o[j] * (1 - t * t);
    di[j] = dc * g[j] * i[j] * (1 - i[j]);
    df[j] = dc * before[j] * f[j] * (1 - f[j]);
    d_o[j] = dh * t * o[j] * (1 - o[j]);
    dg[j] = dc * i[j] * (1 - g[j] * g[j]);
    d_cells[j] = dc * f[j];
  }
}

}  // namespace

void LstmStep::Forward() const {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = row * size;
    ForwardRow(
        {1, size, nullptr, gates + 4 * at, before + at, cells + at, squashed + at, hidden + at},
        cont[row]);
  }
}

void LstmStep::Backward(const float* d_hidden, float* d_cells, float* d_gates) const {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = row * size;
    BackwardRow({1, size, nullptr, gates + 4 * at, before + at, nullptr, squashed + at, nullptr},
                d_hidden + at, d_cells + at, d_gates + 4 * at);
  }
}

}  // namespace hearth::caffe
