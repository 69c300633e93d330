// Checks that layers with support for channels-last compute the same in every mix of layouts.
#include <gmock/gmock.h>

#include <tuple>

#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using Layouts = std::pair<Layout, Layout>;  // of the bottoms, and of the tops

std::vector<Layouts> MixesOf(const LayerCase& row, ChannelsLast takes) {
  if (row.bottoms.empty() || row.bottoms[0].shape.size() != 4) return {};
  if (takes == ChannelsLast::kNo) return {};
  std::vector<Layouts> mixes{{Layout::kChannelsLast, Layout::kChannelsLast}};
  if (takes == ChannelsLast::kAny) {
    mixes.push_back({Layout::kChannelsLast, Layout::kContiguous});
    mixes.push_back({Layout::kContiguous, Layout::kChannelsLast});
  }
  return mixes;
}

// Arbitrary diffs of the tops.
Arrays TopDiffs(const Arrays& tops) {
  Arrays diffs;
  for (const Array& top : tops) {
    diffs.emplace_back(top.shape);
    for (size_t i = 0; i < diffs.back().values.size(); ++i) {
      diffs.back().values[i] = 0.25f * static_cast<float>(i % 7) - 0.6f;
    }
  }
  return diffs;
}

void ExpectSame(const Tensor& got, const Tensor& expected, const char* what) {
  EXPECT_TRUE(AllClose(got, expected, 1e-4, 1e-5)) << what;
}

void RunBoth(LayerRun* run, LayerRun* plain, bool has_gradient) {
  const Arrays diffs = TopDiffs(plain->Expected());
  for (LayerRun* each : {run, plain}) {
    each->Forward();
    for (const auto& blob : each->layer().blobs()) blob->diff().fill_(0.5f);
    for (Blob* bottom : each->bottoms()) bottom->diff().fill_(99);
    if (has_gradient) each->Backward(diffs);
  }
}

TEST(LayerLayouts, ComputeTheSameValuesAndGradients) {
  int compared = 0;
  for (const LayerCase& row : AllLayerCases()) {
    for (const auto& [bottoms, tops] : MixesOf(row, LayerRun(row).layer().traits().channels_last)) {
      SCOPED_TRACE(row.name);
      LayerRun run(row), plain(row);
      run.SetLayouts(bottoms, tops);
      plain.SetLayouts(Layout::kContiguous, Layout::kContiguous);
      RunBoth(&run, &plain, row.has_gradient);
      // Dropout's mask depends on the memory order.
      if (run.layer().type() == "Dropout" && row.phase == TRAIN) continue;
      for (size_t i = 0; i < run.tops().size(); ++i) {
        ExpectSame(run.tops()[i]->data(), plain.tops()[i]->data(), "top");
      }
      for (size_t i = 0; i < run.bottoms().size(); ++i) {
        ExpectSame(run.bottoms()[i]->diff(), plain.bottoms()[i]->diff(), "bottom diff");
      }
      for (size_t i = 0; i < run.layer().blobs().size(); ++i) {
        ExpectSame(run.layer().blobs()[i]->diff(), plain.layer().blobs()[i]->diff(), "param diff");
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
}

}  // namespace
}  // namespace hearth::caffe
