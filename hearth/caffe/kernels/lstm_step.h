// One step of some rows of LSTM cells, for the layers LSTM and LSTMUnit. Owns none of its
// arrays.
#pragma once

#include <cstdint>

namespace hearth::caffe {

// `gates` holds i, f, o and g of each row, one after another; all other arrays are rows x size.
struct LstmStep {
  int64_t rows, size;
  const float* cont;    // one per row: 0 forgets the cells of the step before
  float* gates;         // before Forward their sums, after it their values
  const float* before;  // cells of the step before
  float* cells;         // written
  float* squashed;      // written: tanh(cells)
  float* hidden;        // written: o * tanh(cells)

  void Forward() const;
  // d_cells: the gradient of `cells` from later steps on entry, of `before` on exit. d_gates, the
  // gradient of the sums, is written. `hidden` and `cells` may be gone.
  void Backward(const float* d_hidden, float* d_cells, float* d_gates) const;
};

}  // namespace hearth::caffe
