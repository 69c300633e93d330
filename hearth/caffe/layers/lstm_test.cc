#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/caffe/layers/testing/recurrent_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;

Arrays UnitReference(const Arrays& bottoms, const Arrays&) {
  const int64_t rows = bottoms[0].shape[1], size = bottoms[0].shape[2];
  Array cells(bottoms[0].shape), hidden(bottoms[0].shape);
  for (int64_t row = 0; row < rows; ++row) {
    const float* before = &bottoms[0].values[row * size];
    const float* sums = &bottoms[1].values[row * 4 * size];
    Cell cell{true, Doubles(size), Doubles(before, before + size)};
    cell.Step(Doubles(sums, sums + 4 * size), bottoms[2].values[row], Array({4 * size, size}));
    std::copy(cell.cells.begin(), cell.cells.end(), &cells.values[row * size]);
    std::copy(cell.hidden.begin(), cell.hidden.end(), &hidden.values[row * size]);
  }
  return {cells, hidden};
}

}  // namespace

std::vector<LayerCase> LstmCases() {
  LayerCase unit{"lstm_unit",
                 "type: 'LSTMUnit'",
                 {{{1, 4, 3}, -1, 1}, {{1, 4, 12}}, {{1, 4}, 0, 0, 2}},
                 UnitReference,
                 2};
  unit.without_gradient = {2};
  unit.fixed_rows = true;
  return {
      RecurrentRow("lstm", {}),
      RecurrentRow("lstm_static", {.has_static = true}),
      RecurrentRow("lstm_exposed", {.exposed = true}),
      RecurrentRow("lstm_exposed_static", {.has_static = true, .exposed = true}),
      unit,
  };
}
const bool kLstmCases = AddLayerCases(LstmCases);

namespace {

// These parameters are required for reading BVLC Caffe's model files.
TEST(Lstm, HasCaffesParameters) {
  EXPECT_THAT(ParamShapes("LSTM"), ElementsAre(20, 6, 20, 20, 7, 20, 5));
}

// With the forget gate closed and the other gates open, the state is only what this step adds.
TEST(LstmUnit, ForgetsItsCellsBehindAClosedGate) {
  const LayerCase row{"case", "type: 'LSTMUnit'", {{{1, 1, 1}}, {{1, 1, 4}}, {{1, 1}}}, nullptr, 2};
  LayerRun run(row);
  run.bottoms()[0]->data_ptr()[0] = 5;        // cells of the previous step
  const float gates[] = {50, -50, 50, 0.5F};  // input, forget, output, value
  std::copy(gates, gates + 4, run.bottoms()[1]->data_ptr());
  run.bottoms()[2]->data_ptr()[0] = 1;
  run.Forward();
  EXPECT_FLOAT_EQ(run.TopValues()[0].values[0], std::tanh(0.5F));
  EXPECT_FLOAT_EQ(run.TopValues()[1].values[0], std::tanh(std::tanh(0.5F)));
}

TEST(LstmUnit, NamesMismatchedShapes) {
  const LayerCase row{"case", "type: 'LSTMUnit'", {{{1, 4, 3}}, {{1, 4, 9}}, {{1, 4}}}, nullptr, 2};
  EXPECT_EQ(CodeOf([&] { LayerRun(row).Forward(); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace hearth::caffe
