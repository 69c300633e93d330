#include "hearth/caffe/layers/row_data.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/data/testing/row_testing.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kLayer[] =
    "type: 'CoSData' cos_data_param { batch_size: 3 "
    "top { name: 'ints' type: INT_ARRAY channels: 2 sample_num_axes: 1 transpose: true } }";

LayerCase RowDataRow(const std::shared_ptr<const batch::BatchView>& batch) {
  LayerCase row{"case", kLayer, {}, nullptr};
  row.prepare_context = [batch](NetContext* context) {
    if (batch) context->open_source = [batch](const LayerParameter&) { return SourceOf({batch}); };
  };
  return row;
}

TEST(RowData, HasItsFullShapeBeforeTheFirstMinibatch) {
  const LayerCase row = RowDataRow(nullptr);
  LayerRun run(row);
  run.layer().Reshape(run.bottoms(), run.tops());
  EXPECT_THAT(run.tops()[0]->shape(), ElementsAre(2, 3));
}

TEST(RowData, StoresTransposedRowsAsColumns) {
  const LayerCase row = RowDataRow(
      batch::BatchBuilder().AddInt32List("ints", {{1, 2}, {3, 4}, {5, 6}, {7, 8}}).Build());
  LayerRun run(row);
  ASSERT_EQ(run.layer().Fetch(), 3);
  run.Forward();
  EXPECT_THAT(run.TopValues()[0].values, ElementsAre(1, 3, 5, 2, 4, 6));
  ASSERT_EQ(run.layer().Fetch(), 1);
  run.Forward();
  EXPECT_THAT(run.tops()[0]->shape(), ElementsAre(2, 1));
  EXPECT_THAT(run.TopValues()[0].values, ElementsAre(7, 8));
}

TEST(RowData, FailsWithoutRows) {
  const LayerCase row = RowDataRow(nullptr);
  LayerRun run(row);
  EXPECT_EQ(run.layer().Fetch(), std::nullopt);
  EXPECT_EQ(run.layer().fetched_rows(), nullptr);
  try {
    run.Forward();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("but no rows were fetched"));
  }
}

TEST(RowData, ReportsInvalidRowsOnTheNetsThreadSoThatTheReporterMayThrow) {
  LayerCase row =
      RowDataRow(batch::BatchBuilder().AddInt32List("ints", {{1, 2, 3}, {3, 4}}).Build());
  const auto open = row.prepare_context;
  row.prepare_context = [open](NetContext* context) {
    open(context);
    context->on_invalid_row = [](const std::string& id, const std::string& reason) {
      Throw(ErrorCode::kDataLoss, "row {}: {}", id, reason);
    };
  };
  LayerRun run(row);
  try {
    run.layer().Fetch();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "row 00000000: column 'ints' has 3 values, more than the 2 of its top");
  }
}

TEST(RowData, RequiresABatchSize) {
  const LayerCase row{"case",
                      "type: 'CoSData' cos_data_param { top { name: 'x' type: INT "
                      "sample_num_axes: 0 } }",
                      {},
                      nullptr};
  EXPECT_THROW(LayerRun run(row), Error);
}

}  // namespace
}  // namespace hearth::caffe
