#include <gmock/gmock.h>

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

// Reference of BatchNorm, with channels as axis 1. If `global` is true, it uses the running
// statistics instead of the bottom's.
auto BatchNormReference(bool global, double eps) {
  return [=](const Arrays& bottoms, const Arrays& params) {
    Array y = bottoms[0];
    const int64_t channels = y.shape[1];
    const int64_t inner = y.Count() / (y.shape[0] * channels);
    const auto channel = [=](int64_t i) { return i / inner % channels; };
    std::vector<double> mean(channels), variance(channels);
    const int64_t per_channel = y.Count() / channels;
    const auto count = static_cast<double>(per_channel);
    for (int64_t i = 0; i < y.Count(); ++i) mean[channel(i)] += y.values[i] / count;
    for (int64_t i = 0; i < y.Count(); ++i) {
      variance[channel(i)] += std::pow(y.values[i] - mean[channel(i)], 2) / count;
    }
    for (int64_t c = 0; c < channels && global; ++c) {
      mean[c] = params[0].values[c] / params[2].values[0];
      variance[c] = params[1].values[c] / params[2].values[0];
    }
    for (int64_t i = 0; i < y.Count(); ++i) {
      const int64_t c = channel(i);
      y.values[i] = static_cast<float>((y.values[i] - mean[c]) / std::sqrt(variance[c] + eps));
    }
    return Arrays{y};
  };
}

LayerCase BatchNormRow(std::string name, const std::string& param, Phase phase, bool global,
                       double eps = 1e-5) {
  LayerCase row{std::move(name),
                "type: 'BatchNorm' batch_norm_param { " + param + " }",
                {{{3, 2, 2, 2}}},
                BatchNormReference(global, eps)};
  row.phase = phase;
  row.in_place = true;
  // The running sum of variances must not be negative.
  row.prepare_layer = [](Layer* layer) {
    for (const auto& blob : layer->blobs()) {
      for (int64_t i = 0; i < blob->count(); ++i) {
        blob->data_ptr()[i] = std::fabs(blob->data_ptr()[i]);
      }
    }
  };
  return row;
}

}  // namespace

std::vector<LayerCase> BatchNormCases() {
  LayerCase rows = BatchNormRow("batch_norm_2d", "", TRAIN, false);
  rows.bottoms = {{{4, 3}}};
  // A single row of two-dimensional input has variance 0, so the result would be rounding noise.
  rows.fixed_rows = true;
  return {
      BatchNormRow("batch_norm_train", "", TRAIN, false),
      BatchNormRow("batch_norm_test", "", TEST, true),
      BatchNormRow("batch_norm_global_in_train", "use_global_stats: true eps: 0.1", TRAIN, true,
                   0.1),
      BatchNormRow("batch_norm_own_in_test", "use_global_stats: false", TEST, false),
      rows,
  };
}
const bool kBatchNormCases = AddLayerCases(BatchNormCases);

namespace {

TEST(BatchNorm, AccumulatesStatisticsWithTheUnbiasedVariance) {
  LayerCase row = BatchNormRow("case", "moving_average_fraction: 0.5", TRAIN, false);
  row.bottoms = {{{2, 1}}};
  row.prepare_layer = [](Layer* layer) {
    for (const auto& blob : layer->blobs()) blob->data().fill_(8);
  };
  LayerRun run(row);
  run.bottoms()[0]->data_ptr()[0] = 1;
  run.bottoms()[0]->data_ptr()[1] = 3;
  run.Forward();
  EXPECT_FLOAT_EQ(*run.layer().blobs()[0]->data_ptr(), 8 * 0.5f + 2);
  EXPECT_FLOAT_EQ(*run.layer().blobs()[1]->data_ptr(), 8 * 0.5f + 1 * 2);
  EXPECT_FLOAT_EQ(*run.layer().blobs()[2]->data_ptr(), 8 * 0.5f + 1);
}

TEST(BatchNorm, WithoutStatisticsDividesByTheRootOfEps) {
  LayerCase row = BatchNormRow("case", "eps: 0.25", TEST, true);
  row.prepare_layer = [](Layer* layer) {
    for (const auto& blob : layer->blobs()) blob->data().zero_();
  };
  LayerRun run(row);
  run.Forward();
  EXPECT_FLOAT_EQ(run.tops()[0]->data_ptr()[0], run.bottoms()[0]->data_ptr()[0] * 2);
}

TEST(BatchNorm, FreezesItsParameters) {
  const LayerCase row = BatchNormRow("case", "", TRAIN, false);
  LayerRun run(row);
  ASSERT_EQ(run.layer().param().param_size(), 3);
  EXPECT_EQ(run.layer().param().param(2).lr_mult(), 0);
  LayerCase learning = row;
  learning.layer += " param { lr_mult: 1 }";
  EXPECT_THROW(LayerRun other(learning), Error);
}

}  // namespace
}  // namespace hearth::caffe
