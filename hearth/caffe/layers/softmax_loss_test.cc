#include <gmock/gmock.h>

#include <cmath>
#include <optional>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::HasSubstr;

struct Loss {
  int64_t inner = 1;
  std::optional<int> ignored = {};
  char divisor = 'v';  // normalization: v(alid labels), f(ull), b(atch size), n(one)
  bool second_top = false;

  Arrays operator()(const Arrays& bottoms, const Arrays&) const {
    Array p = bottoms[0];
    const int64_t classes = p.shape[1], outer = p.shape[0];
    double loss = 0;
    int64_t valid = 0;
    for (int64_t i = 0; i < outer * inner; ++i) {
      const int64_t first = i / inner * classes * inner + i % inner;
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(p.values[first + c * inner]);
      for (int64_t c = 0; c < classes; ++c) {
        float& value = p.values[first + c * inner];
        value = static_cast<float>(std::exp(value) / sum);
      }
      const int label = static_cast<int>(bottoms[1].values[i]);
      if (label == ignored) continue;
      loss -= std::log(p.values[first + label * inner]);
      ++valid;
    }
    const int64_t by = divisor == 'v'   ? valid
                       : divisor == 'f' ? outer * inner
                       : divisor == 'b' ? outer
                                        : 1;
    const Array top({}, {static_cast<float>(loss / std::max<int64_t>(1, by))});
    return second_top ? Arrays{top, p} : Arrays{top};
  }
};

LayerCase SoftmaxLossRow(std::string name, const std::string& param, Loss loss) {
  const std::vector<CaseInput> bottoms =
      loss.inner == 1 ? std::vector<CaseInput>{{{5, 3}}, {{5}, 0, 0, 3}}
                      : std::vector<CaseInput>{{{2, 3, 2, 2}}, {{2, 1, 2, 2}, 0, 0, 3}};
  LayerCase row{std::move(name), "type: 'SoftmaxWithLoss' " + param, bottoms, loss};
  row.without_gradient = {1};
  return row;
}

}  // namespace

std::vector<LayerCase> SoftmaxLossCases() {
  LayerCase with_probabilities = SoftmaxLossRow("softmax_loss_two_tops", "", {.second_top = true});
  with_probabilities.tops = 2;
  with_probabilities.tops_without_gradient = {1};
  return {
      SoftmaxLossRow("softmax_loss", "", {}),
      SoftmaxLossRow("softmax_loss_spatial", "", {.inner = 4}),
      SoftmaxLossRow("softmax_loss_ignore", "loss_param { ignore_label: 1 }",
                     {.inner = 4, .ignored = 1}),
      SoftmaxLossRow("softmax_loss_full", "loss_param { ignore_label: 1 normalization: FULL }",
                     {.inner = 4, .ignored = 1, .divisor = 'f'}),
      SoftmaxLossRow("softmax_loss_batch_size",
                     "loss_param { ignore_label: 0 normalization: BATCH_SIZE }",
                     {.inner = 4, .ignored = 0, .divisor = 'b'}),
      SoftmaxLossRow("softmax_loss_none", "loss_param { normalization: NONE }", {.divisor = 'n'}),
      SoftmaxLossRow("softmax_loss_legacy", "loss_param { normalize: false }",
                     {.inner = 4, .divisor = 'b'}),
      with_probabilities,
  };
}
const bool kSoftmaxLossCases = AddLayerCases(SoftmaxLossCases);

namespace {

std::string SoftmaxLossError(float label, const Shape& labels) {
  const LayerCase row = SoftmaxLossRow("case", "", {});
  LayerRun run(row);
  run.bottoms()[1]->Reshape(labels);
  run.bottoms()[1]->data().zero_();
  run.bottoms()[1]->data_ptr()[2] = label;
  try {
    run.Forward();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(SoftmaxWithLoss, NamesAnInvalidLabel) {
  EXPECT_THAT(SoftmaxLossError(3, {5}),
              HasSubstr("label 3 at position 2 is not one of the classes 0 to 2"));
  EXPECT_THAT(SoftmaxLossError(-1, {5}), HasSubstr("label -1 at position 2"));
}

TEST(SoftmaxWithLoss, NamesALabelThatIsNoInteger) {
  EXPECT_THAT(SoftmaxLossError(std::nanf(""), {5}), HasSubstr("label nan at position 2"));
  EXPECT_THAT(SoftmaxLossError(1e30F, {5}), HasSubstr("label 1e+30 at position 2"));
}

TEST(SoftmaxWithLoss, NamesTheShapesIfLabelsAreMissing) {
  EXPECT_THAT(SoftmaxLossError(0, {4}),
              HasSubstr("need 5 labels, but the label blob has shape 4 (4)"));
}

TEST(SoftmaxWithLoss, IsFiniteIfTheTrueClassHasZeroProbability) {
  const LayerCase row = SoftmaxLossRow("case", "", {});
  LayerRun run(row);
  run.bottoms()[0]->data().zero_();
  run.bottoms()[0]->data_ptr()[0] = -1000;
  run.bottoms()[1]->data().zero_();
  run.Forward();
  EXPECT_NEAR(*run.tops()[0]->data_ptr(), (87.3365f + 4 * std::log(3.f)) / 5, 1e-3f);
}

TEST(SoftmaxWithLoss, RejectsAGradientForLabels) {
  const LayerCase row = SoftmaxLossRow("case", "", {});
  LayerRun run(row);
  run.Forward();
  EXPECT_THROW(run.layer().Backward(run.tops(), {true, true}, run.bottoms()), Error);
}

}  // namespace
}  // namespace hearth::caffe
