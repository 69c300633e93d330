#include <gmock/gmock.h>

#include <optional>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

struct Accuracy {
  int64_t top_k = 1, inner = 1;
  std::optional<int> ignored = {};
  bool per_class = false;

  Arrays operator()(const Arrays& bottoms, const Arrays&) const {
    const int64_t classes = bottoms[0].shape[1];
    std::vector<float> seen(classes), right(classes);
    for (int64_t i = 0; i < bottoms[0].shape[0] * inner; ++i) {
      const int label = static_cast<int>(bottoms[1].values[i]);
      if (label == ignored) continue;
      const auto score = [&](int64_t c) {
        return bottoms[0].values[(i / inner * classes + c) * inner + i % inner];
      };
      int64_t better = 0;
      for (int64_t c = 0; c < classes; ++c) better += c != label && score(c) >= score(label);
      ++seen[label];
      right[label] += better < top_k;
    }
    float all_seen = 0, all_right = 0;
    for (int64_t c = 0; c < classes; ++c) {
      all_seen += seen[c];
      all_right += right[c];
      right[c] = seen[c] > 0 ? right[c] / seen[c] : 0;
    }
    const Array top({}, {all_seen > 0 ? all_right / all_seen : 0});
    return per_class ? Arrays{top, Array({classes}, right)} : Arrays{top};
  }
};

LayerCase AccuracyRow(std::string name, const std::string& param, Accuracy reference) {
  const std::vector<CaseInput> bottoms =
      reference.inner == 1 ? std::vector<CaseInput>{{{12, 4}}, {{12}, 0, 0, 4}}
                           : std::vector<CaseInput>{{{2, 4, 2, 3}}, {{2, 2, 3}, 0, 0, 4}};
  LayerCase row{std::move(name), "type: 'Accuracy' accuracy_param { " + param + " }", bottoms,
                reference};
  row.tops = reference.per_class ? 2 : 1;
  row.has_gradient = false;
  row.phase = TEST;
  return row;
}

}  // namespace

std::vector<LayerCase> AccuracyCases() {
  return {
      AccuracyRow("accuracy", "", {}),
      AccuracyRow("accuracy_top_2", "top_k: 2", {.top_k = 2}),
      AccuracyRow("accuracy_spatial", "", {.inner = 6}),
      AccuracyRow("accuracy_ignore", "ignore_label: 2", {.ignored = 2}),
      AccuracyRow("accuracy_per_class", "", {.per_class = true}),
  };
}
const bool kAccuracyCases = AddLayerCases(AccuracyCases);

namespace {

TEST(Accuracy, CountsATieAgainstTheTrueClass) {
  const LayerCase row = AccuracyRow("case", "", {});
  LayerRun run(row);
  run.bottoms()[0]->data().fill_(1);
  run.Forward();
  EXPECT_EQ(*run.tops()[0]->data_ptr(), 0);
}

TEST(Accuracy, IsZeroWhenAllLabelsAreIgnored) {
  const LayerCase row = AccuracyRow("case", "ignore_label: 0", {});
  LayerRun run(row);
  run.bottoms()[1]->data().zero_();
  run.Forward();
  EXPECT_EQ(*run.tops()[0]->data_ptr(), 0);
}

TEST(Accuracy, RejectsATopKAboveTheClassesAndAGradient) {
  const LayerCase too_many = AccuracyRow("case", "top_k: 5", {});
  EXPECT_THROW(LayerRun(too_many).Forward(), Error);
  const LayerCase row = AccuracyRow("case", "", {});
  LayerRun run(row);
  run.Forward();
  EXPECT_THROW(run.layer().Backward(run.tops(), {true, false}, run.bottoms()), Error);
}

}  // namespace
}  // namespace hearth::caffe
