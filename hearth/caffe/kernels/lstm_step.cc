#include "hearth/caffe/kernels/lstm_step.h"

#include "hearth/base/for_each_cpu.h"
#include "hearth/caffe/kernels/vector_exp.h"

namespace hearth::caffe {
namespace {

HEARTH_INLINE float Tanh(float x) { return 2.f * VectorSigmoid(2.f * x) - 1.f; }

HEARTH_FOR_EACH_CPU void ForwardRow(const LstmStep& step, float cont) {
  float *i = step.gates, *f = i + step.size, *o = f + step.size, *g = o + step.size;
  const float* before = step.before;
  float *cells = step.cells, *squashed = step.squashed, *hidden = step.hidden;
#pragma GCC ivdep
  for (int64_t j = 0; j < step.size; ++j) {
    i[j] = VectorSigmoid(i[j]);
    f[j] = cont * VectorSigmoid(f[j]);
    o[j] = VectorSigmoid(o[j]);
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
