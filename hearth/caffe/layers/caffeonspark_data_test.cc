#include <gmock/gmock.h>

#include <string>

#include "hearth/base/testing/error_testing.h"
#include "hearth/caffe/data/testing/row_testing.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kTwoTops[] =
    "type: 'CoSData' cos_data_param { batch_size: 2 "
    "top { name: 'label' type: INT channels: 1 sample_num_axes: 0 } "
    "top { name: 'x' type: FLOAT_ARRAY channels: 2 sample_num_axes: 1 } }";

NetContext ContextWith(const std::shared_ptr<const batch::BatchView>& rows) {
  NetContext context = FileContext(TRAIN);
  context.open_source = [rows](const LayerParameter&) { return SourceOf({rows}); };
  return context;
}

std::shared_ptr<const batch::BatchView> ThreeRows() {
  return batch::BatchBuilder()
      .AddInt32("label", {7, 8, 9})
      .AddFloatList("x", {{1, 2}, {3, 4}, {5, 6}})
      .Build();
}

TEST(CaffeOnSparkData, EachTopIsAColumnWhateverTheirOrder) {
  FileLayerRun run(kTwoTops, ContextWith(ThreeRows()));
  ASSERT_EQ(run.layer().Fetch(), 2);
  EXPECT_THAT(run.Next(0), ElementsAre(7, 8));
  EXPECT_THAT(run.Values(1), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(run.shape(1), ElementsAre(2, 2));
  ASSERT_EQ(run.layer().Fetch(), 1) << "the last minibatch is smaller";
  EXPECT_THAT(run.Next(0), ElementsAre(9));
  EXPECT_EQ(run.layer().Fetch(), 0);
  run.layer().NextEpoch();
  EXPECT_EQ(run.layer().Fetch(), 2);
}

TEST(CaffeOnSparkData, AMissingColumnIsNamed) {
  FileLayerRun run(kTwoTops, ContextWith(batch::BatchBuilder().AddInt32("label", {7}).Build()));
  EXPECT_THAT(Thrown([&] { run.layer().Fetch(); }).message(), HasSubstr("'x'"));
}

TEST(CaffeOnSparkData, NeedsOneTopParamPerTop) {
  const Error error = Thrown([] { FileLayerRun run(kTwoTops, ContextWith(ThreeRows()), 3); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("cos_data_param has 2 tops, but the layer has 3"));
}

// The prefetching thread reads the layer's rows, so the layer's destructor must stop this thread
// first.
TEST(CaffeOnSparkData, CanBeDestroyedBeforeItsRowsAreUsed) {
  for (int i = 0; i < 50; ++i) {
    FileLayerRun run(kTwoTops, ContextWith(ThreeRows()));
    run.layer().Fetch();
  }
}

}  // namespace
}  // namespace hearth::caffe
