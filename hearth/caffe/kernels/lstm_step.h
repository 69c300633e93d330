// One step of some rows of LSTM cells, for the layers LSTM and LSTMUnit. Does not own its arrays.
#pragma once

#include <cstdint>

namespace hearth::caffe {

// The arrays of one step. `gates` contains i, f, o and g of each row, one after another. All other
// arrays are rows x size, except cont.
struct LstmStep {
  int64_t rows, size;
  const float* cont;    // one per row: 0 resets the previous step's cells
  float* gates;         // sums before Forward, values after it
  const float* before;  // cells of the previous step
  float* cells;         // written
  float* squashed;      // written: tanh(cells)
  float* hidden;        // written: o * tanh(cells)

  void Forward() const;
  // On entry, d_cells contains the gradient of `cells` from later steps; on return, the gradient of
  // `before`. Writes d_gates, the gradient of the sums. `hidden` and `cells` are not read.
  void Backward(const float* d_hidden, float* d_cells, float* d_gates) const;
};

}  // namespace hearth::caffe
