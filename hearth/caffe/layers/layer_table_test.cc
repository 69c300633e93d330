// Checks the layer of each row of the layer table: shapes and values against a plain reference,
// gradients against finite differences, other numbers of rows, and in-place tops.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/caffe/tensor/testing/device_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {

void PrintTo(const LayerCase& layer_case, std::ostream* os) { *os << layer_case.name; }

namespace {

void ExpectNearValues(const Arrays& got, const Arrays& expected, float tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].shape, expected[i].shape) << "array " << i;
    for (size_t j = 0; j < got[i].values.size(); ++j) {
      const float e = expected[i].values[j];
      ASSERT_NEAR(got[i].values[j], e, tolerance * (1 + std::fabs(e)))
          << "array " << i << " at " << j;
    }
  }
}

// Random weights of the tops' values in the scalar objective, whose gradient is checked.
Arrays TopWeights(const Arrays& tops, const LayerCase& layer_case, bool is_loss) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Arrays weights;
  for (size_t i = 0; i < tops.size(); ++i) {
    const auto& without = layer_case.tops_without_gradient;
    const bool counts = std::find(without.begin(), without.end(), i) == without.end();
    weights.emplace_back(tops[i].shape);
    for (float& weight : weights[i].values) {
      weight = !counts ? 0 : is_loss ? 0.7f : uniform(random);
    }
  }
  return weights;
}

double Objective(LayerRun& run, const Arrays& weights) {
  run.Forward();
  const Arrays tops = run.TopValues();
  double sum = 0;
  for (size_t i = 0; i < tops.size(); ++i) {
    for (size_t j = 0; j < tops[i].values.size(); ++j) {
      if (weights[i].values[j] != 0) sum += double{weights[i].values[j]} * tops[i].values[j];
    }
  }
  return sum;
}

// Compares `gradient` with central differences of the objective along every value of `blob`.
void ExpectGradient(LayerRun& run, const Arrays& weights, Blob& blob,
                    const std::vector<float>& gradient, const std::string& what) {
  constexpr float kStep = 4e-3f;
  for (int64_t i = 0; i < blob.count(); ++i) {
    const float value = blob.data_ptr()[i];
    blob.data_ptr()[i] = value + kStep;
    const double above = Objective(run, weights);
    blob.data_ptr()[i] = value - kStep;
    const double below = Objective(run, weights);
    blob.data_ptr()[i] = value;
    const double slope = (above - below) / (2 * kStep);
    ASSERT_NEAR(gradient[i], slope, 5e-3 * std::max(1.0, std::fabs(slope))) << what << " at " << i;
  }
}

class LayerTable : public ::testing::TestWithParam<LayerCase> {};
class LayerTableRows : public LayerTable {};
class LayerTableGradients : public LayerTable {};
class LayerTableInPlace : public LayerTable {};

TEST_P(LayerTable, ForwardAgreesWithThePlainReference) {
  LayerRun run(GetParam());
  const Arrays expected = run.Expected();
  run.Forward();
  ExpectNearValues(run.TopValues(), expected, 1e-5f);
}

TEST_P(LayerTableRows, AcceptAnotherNumber) {
  LayerRun run(GetParam());
  run.Forward();
  for (const int64_t rows : {int64_t{1}, GetParam().bottoms[0].shape[0] + 2}) {
    run.FillBottoms(rows, 7);
    const Arrays expected = run.Expected();
    run.Forward();
    ExpectNearValues(run.TopValues(), expected, 1e-5f);
  }
}

TEST_P(LayerTableGradients, AgreeWithDifferences) {
  const LayerCase& row = GetParam();
  LayerRun run(row);
  run.Forward();
  const Arrays weights = TopWeights(run.TopValues(), row, run.layer().traits().is_loss);
  // Backward must overwrite the bottoms' diffs and add to the parameters'.
  for (Blob* bottom : run.bottoms()) bottom->diff().fill_(99);
  for (const auto& blob : run.layer().blobs()) blob->diff().fill_(0.5f);
  run.Backward(weights);

  std::vector<std::vector<float>> bottom_diffs, param_diffs;
  for (Blob* bottom : run.bottoms()) {
    bottom_diffs.emplace_back(bottom->diff_ptr(), bottom->diff_ptr() + bottom->count());
  }
  for (const auto& blob : run.layer().blobs()) {
    param_diffs.emplace_back(blob->diff_ptr(), blob->diff_ptr() + blob->count());
    for (float& diff : param_diffs.back()) diff -= 0.5f;
  }
  const std::vector<bool> wanted = run.propagate_down();
  for (size_t i = 0; i < run.bottoms().size(); ++i) {
    if (!wanted[i]) {
      EXPECT_EQ(bottom_diffs[i], std::vector<float>(bottom_diffs[i].size(), 99)) << "bottom " << i;
    } else {
      ExpectGradient(run, weights, *run.bottoms()[i], bottom_diffs[i],
                     "bottom " + std::to_string(i));
    }
  }
  for (size_t i = 0; i < param_diffs.size(); ++i) {
    if (run.layer().type() == "BatchNorm") continue;  // its parameters are statistics, not learned
    ExpectGradient(run, weights, *run.layer().blobs()[i], param_diffs[i],
                   "parameter " + std::to_string(i));
  }
}

TEST_P(LayerTableInPlace, ComputesTheSame) {
  const LayerCase& row = GetParam();
  LayerRun apart(row), in_place(row, /*in_place=*/true);
  EXPECT_TRUE(in_place.layer().traits().allows_in_place);
  const Arrays expected = in_place.Expected();
  apart.Forward();
  in_place.Forward();
  ExpectNearValues(in_place.TopValues(), expected, 1e-5f);
  if (!row.has_gradient) return;

  const Arrays weights = TopWeights(expected, row, false);
  for (LayerRun* run : {&apart, &in_place}) {
    for (const auto& blob : run->layer().blobs()) blob->diff().zero_();
    run->Backward(weights);
  }
  EXPECT_TRUE(AllClose(in_place.bottoms()[0]->diff(), apart.bottoms()[0]->diff()));
  for (size_t i = 0; i < apart.layer().blobs().size(); ++i) {
    EXPECT_TRUE(AllClose(in_place.layer().blobs()[i]->diff(), apart.layer().blobs()[i]->diff()));
  }
}

// Simulates a later in-place layer, which overwrites the top.
TEST_P(LayerTableGradients, SurviveAnOverwrittenTop) {
  const LayerCase& row = GetParam();
  LayerRun untouched(row), overwritten(row);
  overwritten.layer().set_top_overwritten(true);
  for (LayerRun* run : {&untouched, &overwritten}) {
    for (const auto& blob : run->layer().blobs()) blob->diff().zero_();
    run->Forward();
  }
  const Arrays weights = TopWeights(untouched.TopValues(), row, untouched.layer().traits().is_loss);
  for (Blob* top : overwritten.tops()) top->data().fill_(77);
  untouched.Backward(weights);
  overwritten.Backward(weights);
  for (size_t i = 0; i < untouched.bottoms().size(); ++i) {
    EXPECT_TRUE(AllClose(overwritten.bottoms()[i]->diff(), untouched.bottoms()[i]->diff()));
  }
}

// Simulates a program that reshapes the layer between forward and backward.
TEST_P(LayerTableGradients, SurviveAReshape) {
  LayerRun straight(GetParam()), reshaped(GetParam());
  if (straight.layer().type() == "Filter") return;  // Filter's tops get their shapes in Forward
  for (LayerRun* run : {&straight, &reshaped}) {
    for (const auto& blob : run->layer().blobs()) blob->diff().zero_();
    run->Forward();
  }
  const Arrays weights =
      TopWeights(straight.TopValues(), GetParam(), straight.layer().traits().is_loss);
  reshaped.layer().Reshape(reshaped.bottoms(), reshaped.tops());
  straight.Backward(weights);
  reshaped.Backward(weights);
  for (size_t i = 0; i < straight.bottoms().size(); ++i) {
    EXPECT_TRUE(AllClose(reshaped.bottoms()[i]->diff(), straight.bottoms()[i]->diff()));
  }
}

// In the first layer of a net, whose bottoms are data, only parameters need gradients.
TEST_P(LayerTableGradients, OfParametersDoNotDependOnThoseOfBottoms) {
  const LayerCase& row = GetParam();
  LayerRun all(row), parameters_only(row);
  for (LayerRun* run : {&all, &parameters_only}) {
    for (const auto& blob : run->layer().blobs()) blob->diff().zero_();
    run->Forward();
  }
  const Arrays weights = TopWeights(all.TopValues(), row, all.layer().traits().is_loss);
  all.Backward(weights);
  for (size_t i = 0; i < weights.size(); ++i) {
    SetValues(weights[i], parameters_only.tops()[i]->diff());
  }
  const std::vector<bool> none(row.bottoms.size(), false);
  parameters_only.layer().Backward(parameters_only.tops(), none, parameters_only.bottoms());
  for (size_t i = 0; i < all.layer().blobs().size(); ++i) {
    EXPECT_TRUE(
        AllClose(parameters_only.layer().blobs()[i]->diff(), all.layer().blobs()[i]->diff()))
        << "parameter " << i;
  }
}

template <typename Predicate>
auto CasesWhere(Predicate is_wanted, const ComputeDevice& device = {}) {
  std::vector<LayerCase> wanted = AllLayerCases();
  std::erase_if(wanted, [&](const LayerCase& row) { return !is_wanted(row); });
  for (LayerCase& row : wanted) row.device = device;
  return ::testing::ValuesIn(wanted);
}

bool Any(const LayerCase&) { return true; }
bool HasOtherRows(const LayerCase& row) { return !row.fixed_rows && !row.bottoms.empty(); }
bool HasGradient(const LayerCase& row) { return row.has_gradient; }
bool RunsInPlace(const LayerCase& row) { return row.in_place; }

std::string NameOf(const ::testing::TestParamInfo<LayerCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(All, LayerTable, CasesWhere(Any), NameOf);
INSTANTIATE_TEST_SUITE_P(All, LayerTableRows, CasesWhere(HasOtherRows), NameOf);
INSTANTIATE_TEST_SUITE_P(All, LayerTableGradients, CasesWhere(HasGradient), NameOf);
INSTANTIATE_TEST_SUITE_P(All, LayerTableInPlace, CasesWhere(RunsInPlace), NameOf);
INSTANTIATE_TEST_SUITE_P(OnDevice, LayerTable, CasesWhere(Any, DeviceForTests()), NameOf);
INSTANTIATE_TEST_SUITE_P(OnDevice, LayerTableRows, CasesWhere(HasOtherRows, DeviceForTests()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(OnDevice, LayerTableGradients, CasesWhere(HasGradient, DeviceForTests()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(OnDevice, LayerTableInPlace, CasesWhere(RunsInPlace, DeviceForTests()),
                         NameOf);

TEST(LayerTableCompleteness, EveryRegisteredTypeHasARow) {
  std::set<std::string> covered;
  for (const LayerCase& row : AllLayerCases()) {
    LayerParameter param;
    ParseText(row.layer, row.name, &param);
    covered.insert(param.type());
  }
  EXPECT_THAT(LayerRegistry::Default().types(), ::testing::ElementsAreArray(covered));
}

}  // namespace
}  // namespace hearth::caffe
