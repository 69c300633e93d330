#include "hearth/caffe/kernels/lstm_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hearth::caffe {
namespace {

float Sigma(float x) { return 1 / (1 + std::exp(-x)); }

// Arrays of one step of `rows` rows, without equal values.
struct StepArrays {
  explicit StepArrays(int64_t row_count, int64_t row_size)
      : rows(row_count),
        size(row_size),
        cont(rows, 1),
        gates(4 * rows * size),
        before(rows * size),
        cells(rows * size),
        squashed(rows * size),
        hidden(rows * size) {
    for (size_t i = 0; i < gates.size(); ++i) gates[i] = std::sin(static_cast<float>(i)) * 3;
    for (size_t i = 0; i < before.size(); ++i) before[i] = std::cos(static_cast<float>(i)) * 2;
    cont.front() = 0;
  }
  LstmStep step() {
    return {rows,          size,         cont.data(),     gates.data(),
            before.data(), cells.data(), squashed.data(), hidden.data()};
  }

  const int64_t rows, size;
  std::vector<float> cont, gates, before, cells, squashed, hidden;
};

// Covers sizes around the width of a vector.
TEST(LstmStepTest, ComputesTheFormulasForEverySize) {
  for (const int64_t size : {1, 7, 16, 33}) {
    StepArrays arrays(3, size);
    const std::vector<float> sums = arrays.gates;
    arrays.step().Forward();
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t j = 0; j < size; ++j) {
        const auto gate = [&](int64_t k) { return sums[(row * 4 + k) * size + j]; };
        const int64_t at = row * size + j;
        const float cell = arrays.cont[row] * Sigma(gate(1)) * arrays.before[at] +
                           Sigma(gate(0)) * std::tanh(gate(3));
        ASSERT_NEAR(arrays.cells[at], cell, 1e-5) << size;
        ASSERT_NEAR(arrays.hidden[at], Sigma(gate(2)) * std::tanh(cell), 1e-5) << size;
      }
    }
  }
}

TEST(LstmStepTest, TheFirstStepOfASequenceIgnoresItsCells) {
  StepArrays arrays(2, 4), other(2, 4);
  for (float& cell : other.before) cell += 100;
  arrays.step().Forward();
  other.step().Forward();
  for (size_t j = 0; j < 4; ++j) {
    EXPECT_EQ(arrays.hidden[j], other.hidden[j]) << "cont is 0 in row 0";
    EXPECT_NE(arrays.hidden[4 + j], other.hidden[4 + j]);
  }
}

// Compares the gradient of each gate's sum with a finite difference of the objective, the sum of
// all hidden values and cells.
TEST(LstmStepTest, TheGradientIsThatOfTheForwardPass) {
  constexpr int64_t kSize = 5;
  constexpr float kStep = 1e-2F;
  const auto total = [](size_t changed, float by) {
    StepArrays arrays(1, kSize);
    arrays.cont = {1};
    arrays.gates[changed] += by;
    arrays.step().Forward();
    double sum = 0;
    for (int64_t j = 0; j < kSize; ++j) sum += double{arrays.hidden[j]} + arrays.cells[j];
    return sum;
  };
  StepArrays arrays(1, kSize);
  arrays.cont = {1};
  arrays.step().Forward();
  std::vector<float> d_hidden(kSize, 1), d_cells(kSize, 1), d_gates(4 * kSize);
  arrays.step().Backward(d_hidden.data(), d_cells.data(), d_gates.data());
  for (size_t i = 0; i < d_gates.size(); ++i) {
    EXPECT_NEAR(d_gates[i], (total(i, kStep) - total(i, -kStep)) / (2 * kStep), 1e-3) << i;
  }
}

}  // namespace
}  // namespace hearth::caffe
