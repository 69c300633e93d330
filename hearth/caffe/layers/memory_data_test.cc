#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/data/testing/row_testing.h"
#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/net/array_input.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

LayerCase Fed(const std::string& param, const std::shared_ptr<const batch::BatchView>& batch,
              std::vector<std::pair<std::string, std::string>>* invalid_rows = nullptr) {
  LayerCase row{"fed",
                "type: 'MemoryData' source_class: 'com.yahoo.ml.caffe.ImageDataFrame' " + param,
                {},
                nullptr,
                2};
  row.prepare_context = [=](NetContext* context) {
    context->open_source = [batch](const LayerParameter&) { return SourceOf({batch}); };
    if (invalid_rows != nullptr) {
      context->on_invalid_row = [invalid_rows](const std::string& id, const std::string& reason) {
        invalid_rows->emplace_back(id, reason);
      };
    }
  };
  return row;
}

LayerCase ByArrays() {
  return {"arrays",
          "type: 'MemoryData' memory_data_param { batch_size: 2 channels: 1 height: 1 width: 3 }",
          {},
          nullptr,
          2};
}

TEST(MemoryData, DeliversEncodedRowsAndTheirLabels) {
  const image::Image image = image::GradientImage(2, 2, 1);
  const auto batch = batch::BatchBuilder()
                         .AddString("id", {"a", "b", "c"})
                         .AddString("label", {"3", "4", "5"})
                         .AddBinary("data", {image::EncodePng(image), image::EncodePng(image),
                                             image::EncodePng(image)})
                         .Build();
  const LayerCase row =
      Fed("memory_data_param { batch_size: 2 channels: 1 height: 2 width: 2 image_encoded: true } "
          "transform_param { scale: 0.5 }",
          batch);
  LayerRun run(row);
  ASSERT_EQ(run.layer().Fetch(), 2);
  run.Forward();
  EXPECT_THAT(run.tops()[0]->shape(), ElementsAre(2, 1, 2, 2));
  EXPECT_EQ(run.tops()[0]->data_ptr()[5], 0.5f * image.pixels[1]);
  EXPECT_THAT(run.TopValues()[1].values, ElementsAre(3, 4));
  EXPECT_EQ(run.layer().fetched_rows()->rows[1].index, 1);

  ASSERT_EQ(run.layer().Fetch(), 1);
  run.Forward();
  EXPECT_THAT(run.tops()[0]->shape(), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(run.TopValues()[1].values, ElementsAre(5));
  EXPECT_EQ(run.layer().Fetch(), 0);
  EXPECT_THROW(run.Forward(), Error);
  run.layer().NextEpoch();
  EXPECT_EQ(run.layer().Fetch(), 2);
}

TEST(MemoryData, SkipsInvalidRowsWithTheirLabelsAndReportsThem) {
  std::vector<std::pair<std::string, std::string>> invalid_rows;
  const std::string good = image::EncodePng(image::GradientImage(2, 2, 1));
  const auto batch = batch::BatchBuilder()
                         .AddString("id", {"a", "b", "c", "d"})
                         .AddInt32("label", {1, 2, 3, 4})
                         .AddBinary("data", {good, "not an image",
                                             image::EncodePng(image::GradientImage(3, 2, 1)), good})
                         .Build();
  const LayerCase row =
      Fed("memory_data_param { batch_size: 2 channels: 1 height: 2 width: 2 image_encoded: true }",
          batch, &invalid_rows);
  LayerRun run(row);
  ASSERT_EQ(run.layer().Fetch(), 2);
  run.Forward();
  EXPECT_THAT(run.TopValues()[1].values, ElementsAre(1, 4));
  EXPECT_EQ(run.layer().fetched_rows()->rows[1].index, 3);
  EXPECT_THAT(invalid_rows,
              ElementsAre(Pair("b", HasSubstr("neither a JPEG nor a PNG image")),
                          Pair("c", "an image of 1 x 3 x 2 does not match the layer's 1 x 2 x 2")));
}

TEST(MemoryData, ReadsSizeAndEncodingFromTheRow) {
  const auto batch =
      batch::BatchBuilder()
          .AddInt32("label", {1, 2})
          .AddInt32("encoded", {0, 1})
          .AddInt32("channels", {1, 1})
          .AddInt32("height", {2, 0})
          .AddInt32("width", {3, 0})
          .AddBinary("data", {"abcdef", image::EncodePng(image::GradientImage(2, 3, 1))})
          .Build();
  const LayerCase row =
      Fed("memory_data_param { batch_size: 2 channels: 1 height: 2 width: 3 }", batch);
  LayerRun run(row);
  ASSERT_EQ(run.layer().Fetch(), 2);
  run.Forward();
  EXPECT_EQ(run.tops()[0]->data_ptr()[0], 'a');
  EXPECT_EQ(run.tops()[0]->data_ptr()[6], 20);
}

TEST(MemoryData, NamesAMissingColumn) {
  const LayerCase row = Fed("memory_data_param { batch_size: 2 channels: 1 height: 1 width: 1 }",
                            batch::BatchBuilder().AddInt32("label", {1}).Build());
  LayerRun run(row);
  try {
    run.layer().Fetch();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.message(), HasSubstr("data"));
  }
}

TEST(MemoryData, RepeatsItsArrays) {
  const LayerCase row = ByArrays();
  LayerRun run(row);
  EXPECT_EQ(run.layer().Fetch(), std::nullopt);
  EXPECT_THROW(run.Forward(), Error);
  auto& arrays = dynamic_cast<ArrayInput&>(run.layer());
  arrays.SetArrays(Arange(12).view({4, 1, 1, 3}), Arange(4));
  for (const float first : {0.f, 6.f, 0.f}) {
    run.Forward();
    EXPECT_EQ(run.tops()[0]->data_ptr()[0], first);
    EXPECT_EQ(run.tops()[1]->data_ptr()[1], first / 3 + 1);
    EXPECT_THAT(run.tops()[1]->shape(), ElementsAre(2, 1, 1, 1));
  }
}

TEST(MemoryData, RejectsMismatchedArrays) {
  const LayerCase row = ByArrays();
  LayerRun run(row);
  auto& arrays = dynamic_cast<ArrayInput&>(run.layer());
  EXPECT_THROW(arrays.SetArrays(Tensor::Zeros({4, 1, 3, 1}), Tensor::Zeros({4})), Error);
  EXPECT_THROW(arrays.SetArrays(Tensor::Zeros({3, 1, 1, 3}), Tensor::Zeros({3})), Error);
  EXPECT_THROW(arrays.SetArrays(Tensor::Zeros({4, 1, 1, 3}), Tensor::Zeros({3})), Error);
}

}  // namespace
}  // namespace hearth::caffe
