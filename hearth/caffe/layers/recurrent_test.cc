// Tests that apply to both LSTM and RNN.
#include "hearth/caffe/layers/recurrent.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/recurrent_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::HasSubstr;

class RecurrentLayers : public ::testing::TestWithParam<bool> {
 protected:
  LayerCase row_ = RecurrentRow("case", {.lstm = GetParam()});
};
INSTANTIATE_TEST_SUITE_P(All, RecurrentLayers, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Lstm" : "Rnn"; });

// Runs steps [begin, end) of x, in which no sequence ends, and returns the top.
Tensor RunSteps(LayerRun& run, const Tensor& x, int64_t begin, int64_t end) {
  run.bottoms()[0]->Reshape({end - begin, x.size(1), x.size(2)});
  run.bottoms()[0]->data().copy_(x.slice(0, begin, end));
  run.bottoms()[1]->Reshape({end - begin, x.size(1)});
  run.bottoms()[1]->data().fill_(1);
  run.Forward();
  return run.tops()[0]->data().clone();
}

TEST_P(RecurrentLayers, CarryTheirStateToTheNextMinibatch) {
  const Tensor x = Randn({5, kRows, 3});
  LayerRun at_once(row_), in_parts(row_);
  const Tensor whole = RunSteps(at_once, x, 0, 5);
  EXPECT_TRUE(AllClose(RunSteps(in_parts, x, 0, 3), whole.slice(0, 0, 3)));
  EXPECT_TRUE(AllClose(RunSteps(in_parts, x, 3, 5), whole.slice(0, 3, 5)));
}

TEST_P(RecurrentLayers, ResetWhereTheMarkIsZero) {
  const Tensor x = Randn({4, kRows, 3});
  LayerRun run(row_), fresh(row_);
  RunSteps(run, x, 0, 4);
  run.bottoms()[1]->data()[0].fill_(0);
  run.Forward();
  EXPECT_TRUE(AllClose(run.tops()[0]->data(), RunSteps(fresh, x, 0, 4)));
}

// Tests more rows than one thread processes, and a change of the number of rows.
TEST_P(RecurrentLayers, AcceptAnyNumberOfRows) {
  for (const int64_t rows : {40, 1, 17}) {
    LayerRun run(row_);
    run.bottoms()[0]->Reshape({6, rows, 3});
    run.bottoms()[0]->data().copy_(Randn({6, rows, 3}));
    run.bottoms()[1]->Reshape({6, rows});
    for (int64_t i = 0; i < 6 * rows; ++i) run.bottoms()[1]->data_ptr()[i] = i % 7 < 5;
    run.bottoms()[1]->data()[0].fill_(0);
    const Arrays expected = run.Expected();
    run.Forward();
    EXPECT_THAT(run.TopValues()[0].values,
                ::testing::Pointwise(::testing::FloatNear(1e-5f), expected[0].values));
  }
}

// pycaffe users call backward several times after one forward.
TEST_P(RecurrentLayers, ComputeTheSameGradientTwice) {
  LayerRun run(row_);
  run.Forward();
  const Arrays top_diff = {Array(run.tops()[0]->shape(), std::vector<float>(24, 0.3f))};
  run.Backward(top_diff);
  const Tensor first = run.bottoms()[0]->diff().clone();
  EXPECT_GT(LargestMagnitude(first), 0);
  run.Backward(top_diff);
  EXPECT_TRUE(Equal(run.bottoms()[0]->diff(), first));
}

TEST_P(RecurrentLayers, EndTheGradientAtGivenStates) {
  const LayerCase row = RecurrentRow("case", {.lstm = GetParam(), .exposed = true});
  LayerRun run(row);
  run.Forward();
  std::vector<bool> wanted(run.bottoms().size(), true);
  wanted[1] = false;
  run.bottoms()[2]->diff().fill_(9);
  run.layer().Backward(run.tops(), wanted, run.bottoms());
  EXPECT_THAT(ListOf(run.bottoms()[2]->diff()), testing::Each(0));
}

TEST_P(RecurrentLayers, NameMismatchedShapes) {
  const auto error_with = [&](const LayerCase& row, size_t bottom, const Shape& shape) {
    LayerRun run(row);
    run.bottoms()[bottom]->Reshape(shape);
    try {
      run.Forward();
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_THAT(error_with(row_, 0, {4, 3, 5}), HasSubstr("take 3 values per row and step"));
  EXPECT_THAT(error_with(row_, 1, {4, 2}),
              HasSubstr("4 x 3 continuation indicators, one per step and row"));
  const LayerCase with_static = RecurrentRow("case", {.lstm = GetParam(), .has_static = true});
  EXPECT_THAT(error_with(with_static, 2, {2, 4}),
              HasSubstr("3 rows of 4 values, but has shape 2 4"));
  const LayerCase exposed = RecurrentRow("case", {.lstm = GetParam(), .exposed = true});
  EXPECT_THAT(error_with(exposed, 2, {1, 3, 5}), HasSubstr("bottom 2 must have shape 1 3 2 (6)"));
}

}  // namespace
}  // namespace hearth::caffe
