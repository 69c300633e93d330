#include <gmock/gmock.h>

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

double SquaredDistance(const Arrays& bottoms, int64_t row) {
  const int64_t dim = bottoms[0].Count() / bottoms[0].shape[0];
  double sum = 0;
  for (int64_t i = row * dim; i < (row + 1) * dim; ++i) {
    sum += std::pow(double{bottoms[0].values[i]} - bottoms[1].values[i], 2);
  }
  return sum;
}

Arrays HalfMean(double sum, const Arrays& bottoms) {
  return {Array({}, {static_cast<float>(sum / (2.0 * static_cast<double>(bottoms[0].shape[0])))})};
}

Arrays Euclidean(const Arrays& bottoms, const Arrays&) {
  double sum = 0;
  for (int64_t n = 0; n < bottoms[0].shape[0]; ++n) sum += SquaredDistance(bottoms, n);
  return HalfMean(sum, bottoms);
}

auto Contrastive(double margin, bool legacy) {
  return [=](const Arrays& bottoms, const Arrays&) {
    double sum = 0;
    for (int64_t n = 0; n < bottoms[0].shape[0]; ++n) {
      const double square = SquaredDistance(bottoms, n);
      if (bottoms[2].values[n] != 0) {
        sum += square;
      } else if (legacy) {
        sum += std::max(margin - square, 0.0);
      } else {
        sum += std::pow(std::max(margin - std::sqrt(square), 0.0), 2);
      }
    }
    return HalfMean(sum, bottoms);
  };
}

LayerCase ContrastiveRow(std::string name, const std::string& param, double margin, bool legacy) {
  LayerCase row{std::move(name),
                "type: 'ContrastiveLoss' contrastive_loss_param { " + param + " }",
                {{{6, 3}}, {{6, 3}}, {{6}, 0, 0, 2}},
                Contrastive(margin, legacy)};
  row.without_gradient = {2};
  return row;
}

}  // namespace

std::vector<LayerCase> PairLossCases() {
  return {
      {"euclidean_loss", "type: 'EuclideanLoss'", {{{3, 2, 2}}, {{3, 2, 2}}}, Euclidean},
      ContrastiveRow("contrastive_loss", "margin: 3", 3, false),
      ContrastiveRow("contrastive_loss_far", "margin: 0.5", 0.5, false),
      ContrastiveRow("contrastive_loss_legacy", "margin: 5 legacy_version: true", 5, true),
  };
}
const bool kPairLossCases = AddLayerCases(PairLossCases);

namespace {

TEST(EuclideanLoss, NamesShapesThatDiffer) {
  const LayerCase row{"case", "type: 'EuclideanLoss'", {{{3, 2}}, {{3, 3}}}, nullptr};
  try {
    LayerRun(row).Forward();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "the bottoms must have equally many values, but have shapes 3 2 (6) and 3 3 (9)");
  }
}

TEST(ContrastiveLoss, HasAFiniteGradientForEqualRows) {
  const LayerCase row = PairLossCases()[1];
  LayerRun run(row);
  for (Blob* blob : run.bottoms()) blob->data().zero_();
  run.Forward();
  run.Backward({Array({}, {1})});
  EXPECT_EQ(ValuesOf(*run.bottoms()[0]).values, std::vector<float>(18, 0));
}

}  // namespace
}  // namespace hearth::caffe
