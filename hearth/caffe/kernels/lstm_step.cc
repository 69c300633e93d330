#include "hearth/caffe/kernels/lstm_step.h"

#include "hearth/base/for_each_cpu.h"
#include "hearth/caffe/kernels/vector_exp.h"

namespace hearth::caffe {
namespace {

HEARTH_INLINE float Tanh(float x) { return 2.f * VectorSigmoid(2.f * x) - 1.f; }

// The step of Caffe's LSTMUnit. Its gates are in the order i, f, o, g:
//   i, f, o = sigmoid(sums), g = tanh(sums), f is multiplied by cont,
//   c = f * c_before + i * g, h = o * tanh(c)
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

// The chain rule, from the stored gates. With dc = dc_later + dh * o * (1 - tanh(c)^2):
//   di = dc * g * i * (1 - i), df = dc * c_before * f * (1 - f), do = dh * tanh(c) * o * (1 - o),
//   dg = dc * i * (1 - g^2), dc_before = dc * f
// Because cont is 0 or 1, the stored f = cont * sigmoid needs no separate factor: where cont is 0,
// df and dc_before are 0.
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
