#include "hearth/caffe/layers/recurrent.h"

#include <gmock/gmock.h>

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/net/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Doubles = std::vector<double>;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One row of a sequence: plain loops over the formulas.
struct Cell {
  bool lstm;
  Doubles hidden, cells;

  Doubles Product(const Array& weight, const float* x) const {
    Doubles sums(weight.shape[0]);
    for (int64_t o = 0; o < weight.shape[0]; ++o)
      for (int64_t i = 0; i < weight.shape[1]; ++i) {
        sums[o] += weight.at({o, i}) * static_cast<double>(x[i]);
      }
    return sums;
  }

  // `sums`: contribution of the inputs and the bias.
  void Step(Doubles sums, double cont, const Array& weight) {
    const size_t size = hidden.size();
    const std::vector<float> carried = [&] {
      std::vector<float> values;
      for (const double h : hidden) values.push_back(static_cast<float>(cont * h));
      return values;
    }();
    const Doubles recurrent = Product(weight, carried.data());
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += recurrent[i];
    for (size_t i = 0; i < size; ++i) {
      if (!lstm) {
        hidden[i] = std::tanh(sums[i]);
        continue;
      }
      const double in = Sigmoid(sums[i]), forget = Sigmoid(sums[size + i]);
      const double out = Sigmoid(sums[2 * size + i]), value = std::tanh(sums[3 * size + i]);
      cells[i] = cont * forget * cells[i] + in * value;
      hidden[i] = out * std::tanh(cells[i]);
    }
  }
};

struct Recurrent {
  bool lstm = true;
  bool has_static = false, exposed = false;

  Arrays operator()(const Arrays& bottoms, const Arrays& params) const {
    const int64_t steps = bottoms[0].shape[0], rows = bottoms[0].shape[1];
    const size_t hidden_weight = has_static ? 3 : 2;
    const int64_t size = params[hidden_weight].shape[1];
    Arrays tops = {Array({steps, rows, size})};
    if (exposed) tops.resize(lstm ? 3 : 2, Array({1, rows, size}));
    for (int64_t row = 0; row < rows; ++row) {
      Cell cell{lstm, Doubles(size), Doubles(size)};
      for (int64_t i = 0; exposed && i < size; ++i) {
        cell.hidden[i] = bottoms[hidden_weight].at({0, row, i});
        if (lstm) cell.cells[i] = bottoms[hidden_weight + 1].at({0, row, i});
      }
      for (int64_t t = 0; t < steps; ++t) {
        cell.Step(Sums(bottoms, params, cell, t * rows + row), bottoms[1].at({t, row}),
                  params[hidden_weight]);
        const Doubles out = Output(cell, params);
        std::copy(out.begin(), out.end(), &tops[0].values[(t * rows + row) * size]);
      }
      for (int64_t i = 0; exposed && i < size; ++i) {
        tops[1].at({0, row, i}) = static_cast<float>(cell.hidden[i]);
        if (lstm) tops[2].at({0, row, i}) = static_cast<float>(cell.cells[i]);
      }
    }
    return tops;
  }

  Doubles Sums(const Arrays& bottoms, const Arrays& params, const Cell& cell, int64_t at) const {
    Doubles sums = cell.Product(params[0], &bottoms[0].values[at * params[0].shape[1]]);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += params[1].values[i];
    if (!has_static) return sums;
    const int64_t row = at % bottoms[0].shape[1];
    const Doubles more = cell.Product(params[2], &bottoms[2].values[row * params[2].shape[1]]);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
    return sums;
  }

  Doubles Output(const Cell& cell, const Arrays& params) const {
    if (lstm) return cell.hidden;
    const size_t weight = has_static ? 4 : 3;
    const std::vector<float> hidden(cell.hidden.begin(), cell.hidden.end());
    Doubles out = cell.Product(params[weight], hidden.data());
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = std::tanh(out[i] + params[weight + 1].values[i]);
    return out;
  }
};

constexpr int64_t kSteps = 4, kRows = 3, kSize = 2;
const CaseInput kMarks{{kSteps, kRows}, 0, 0, 2};
// The state is 0 before sequences that begin at the first step.
const CaseInput kStartNowhere{{kSteps, kRows}, 0, 0};

std::string RecurrentText(const Recurrent& layer) {
  return std::string("type: '") + (layer.lstm ? "LSTM" : "RNN") +
         "' recurrent_param { num_output: 2 expose_hidden: " + (layer.exposed ? "true" : "false") +
         " }";
}

LayerCase RecurrentRow(std::string name, const Recurrent& layer) {
  LayerCase row{std::move(name),
                RecurrentText(layer),
                {{{kSteps, kRows, 3}, -1, 1}, layer.exposed ? kMarks : kStartNowhere},
                layer};
  if (layer.has_static) row.bottoms.push_back({{kRows, 2, 2}, -1, 1});
  row.without_gradient = {1};
  row.fixed_rows = true;  // the first axis of most bottoms is not the rows
  if (!layer.exposed) return row;
  for (int i = 0; i < (layer.lstm ? 2 : 1); ++i) {
    row.without_gradient.push_back(static_cast<int>(row.bottoms.size()));
    row.bottoms.push_back({{1, kRows, kSize}, -1, 1});
    row.tops_without_gradient.push_back(row.tops++);
  }
  return row;
}

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

std::vector<LayerCase> RecurrentCases() {
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
      RecurrentRow("rnn", {.lstm = false}),
      RecurrentRow("rnn_static", {.lstm = false, .has_static = true}),
      RecurrentRow("rnn_exposed", {.lstm = false, .exposed = true}),
      RecurrentRow("rnn_exposed_static", {.lstm = false, .has_static = true, .exposed = true}),
      unit,
  };
}
const bool kRecurrentCases = AddLayerCases(RecurrentCases);

namespace {

class RecurrentLayers : public ::testing::TestWithParam<bool> {
 protected:
  LayerCase row_ = RecurrentRow("case", {.lstm = GetParam()});
};
INSTANTIATE_TEST_SUITE_P(All, RecurrentLayers, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Lstm" : "Rnn"; });

// The top for steps [begin, end) of the bottom, with no sequence ending in them.
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

// More rows than one thread processes, and a change of their number.
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
  EXPECT_THAT(error_with(row_, 1, {4, 2}), HasSubstr("4 steps of 3 rows need"));
  const LayerCase with_static = RecurrentRow("case", {.lstm = GetParam(), .has_static = true});
  EXPECT_THAT(error_with(with_static, 2, {2, 4}),
              HasSubstr("3 rows of 4 values, not of shape 2 4"));
  const LayerCase exposed = RecurrentRow("case", {.lstm = GetParam(), .exposed = true});
  EXPECT_THAT(error_with(exposed, 2, {1, 3, 5}), HasSubstr("bottom 2 must have shape 1 3 2 (6)"));
}

Shape ParamShapes(const std::string& type) {
  const LayerCase row{"case",
                      "type: '" + type + "' recurrent_param { num_output: 5 }",
                      {{{4, 3, 6}}, {{4, 3}}, {{3, 7}}},
                      nullptr};
  LayerRun run(row);
  Shape all;
  for (const auto& blob : run.layer().blobs()) {
    all.insert(all.end(), blob->shape().begin(), blob->shape().end());
  }
  return all;
}

// Required for reading BVLC Caffe's model files.
TEST(Lstm, HasCaffesParameters) {
  EXPECT_THAT(ParamShapes("LSTM"), ElementsAre(20, 6, 20, 20, 7, 20, 5));
}
TEST(Rnn, HasCaffesParameters) {
  EXPECT_THAT(ParamShapes("RNN"), ElementsAre(5, 6, 5, 5, 7, 5, 5, 5, 5, 5));
}

TEST(LstmUnit, NamesMismatchedShapes) {
  const LayerCase row{"case", "type: 'LSTMUnit'", {{{1, 4, 3}}, {{1, 4, 9}}, {{1, 4}}}, nullptr, 2};
  EXPECT_THROW(LayerRun(row).Forward(), Error);
}

}  // namespace
}  // namespace hearth::caffe
