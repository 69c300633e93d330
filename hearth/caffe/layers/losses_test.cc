#include <gmock/gmock.h>

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

// Reference of a loss: term(score, is_true_class), summed over all scores and divided by the number
// of rows.
template <typename Term>
auto LossReference(Term term) {
  return [term](const Arrays& bottoms, const Arrays&) {
    const int64_t rows = bottoms[0].shape[0], classes = bottoms[0].shape[1];
    double sum = 0;
    for (int64_t i = 0; i < rows * classes; ++i) {
      const bool is_true = static_cast<int64_t>(bottoms[1].values[i / classes]) == i % classes;
      sum += term(static_cast<double>(bottoms[0].values[i]), is_true);
    }
    return Arrays{Array({}, {static_cast<float>(sum / static_cast<double>(rows))})};
  };
}

auto SigmoidReference(int ignored, char divisor) {
  return [=](const Arrays& bottoms, const Arrays&) {
    double sum = 0;
    int64_t valid = 0;
    for (size_t i = 0; i < bottoms[0].values.size(); ++i) {
      const float target = bottoms[1].values[i];
      if (static_cast<int>(target) == ignored) continue;
      const double p = 1 / (1 + std::exp(-bottoms[0].values[i]));
      sum -= target * std::log(p) + (1 - target) * std::log(1 - p);
      ++valid;
    }
    const int64_t by = divisor == 'b' ? bottoms[0].shape[0] : valid;
    return Arrays{Array({}, {static_cast<float>(sum / std::max<int64_t>(1, by))})};
  };
}

LayerCase LossRow(std::string name, std::string layer, CaseInput scores, CaseInput labels,
                  std::function<Arrays(const Arrays&, const Arrays&)> reference) {
  LayerCase row{std::move(name),
                std::move(layer),
                {std::move(scores), std::move(labels)},
                std::move(reference)};
  row.without_gradient = {1};
  return row;
}

}  // namespace

std::vector<LayerCase> LossCases() {
  const auto hinge = [](double x, bool is_true) { return std::max(0.0, 1 + (is_true ? -x : x)); };
  const auto squared = [hinge](double x, bool is_true) { return std::pow(hinge(x, is_true), 2); };
  const auto logistic = [](double p, bool is_true) { return is_true ? -std::log(p) : 0; };
  return {
      LossRow("hinge_loss", "type: 'HingeLoss'", {{4, 3}}, {{4}, 0, 0, 3}, LossReference(hinge)),
      LossRow("hinge_loss_squared", "type: 'HingeLoss' hinge_loss_param { norm: L2 }", {{4, 3}},
              {{4}, 0, 0, 3}, LossReference(squared)),
      LossRow("multinomial_logistic_loss", "type: 'MultinomialLogisticLoss'", {{4, 3}, 0.1f, 0.9f},
              {{4}, 0, 0, 3}, LossReference(logistic)),
      LossRow("sigmoid_cross_entropy", "type: 'SigmoidCrossEntropyLoss'", {{4, 3}, -4, 4},
              {{4, 3}, 0, 1}, SigmoidReference(-1, 'b')),
      LossRow("sigmoid_cross_entropy_ignore",
              "type: 'SigmoidCrossEntropyLoss' loss_param { ignore_label: 1 normalization: VALID }",
              {{4, 3}}, {{4, 3}, 0, 0, 2}, SigmoidReference(1, 'v')),
  };
}
const bool kLossCases = AddLayerCases(LossCases);

namespace {

TEST(SigmoidCrossEntropyLoss, IsFiniteForLargeScores) {
  const LayerCase row = LossCases()[3];
  LayerRun run(row);
  run.bottoms()[0]->data().fill_(-1e4);
  run.bottoms()[1]->data().zero_();
  run.bottoms()[1]->data_ptr()[0] = 1;
  run.Forward();
  EXPECT_FLOAT_EQ(*run.tops()[0]->data_ptr(), 1e4f / 4);
}

}  // namespace
}  // namespace hearth::caffe
