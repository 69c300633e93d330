#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;

// Reference that returns the bottom's values in the shape that `shape` computes from the bottom's.
template <typename Function>
auto ShapesOf(Function shape) {
  return [shape](const Arrays& bottoms, const Arrays&) {
    return Arrays{Array(shape(bottoms[0].shape), bottoms[0].values)};
  };
}

std::string Reshape(const std::string& param) {
  return "type: 'Reshape' reshape_param { " + param + " }";
}

}  // namespace

std::vector<LayerCase> ShapeOpCases() {
  const std::vector<CaseInput> bottom = {{{2, 3, 4}}};
  const auto copies = [](const Arrays& bottoms, const Arrays&) { return Arrays(3, bottoms[0]); };
  return {
      {"split", "type: 'Split'", bottom, copies, 3},
      {"split_one", "type: 'Split'", bottom, ShapesOf([](Shape s) { return s; })},
      {"flatten", "type: 'Flatten'", bottom, ShapesOf([](Shape s) {
         return Shape{s[0], 12};
       })},
      {"flatten_axes", "type: 'Flatten' flatten_param { axis: 0 end_axis: -2 }", bottom,
       ShapesOf([](Shape s) {
         return Shape{s[0] * 3, 4};
       })},
      {"reshape", Reshape("shape { dim: 0 dim: 2 dim: -1 }"), bottom, ShapesOf([](Shape s) {
         return Shape{s[0], 2, 6};
       })},
      {"reshape_part", Reshape("shape { dim: 2 dim: 2 } axis: 2 num_axes: 1"), bottom,
       ShapesOf([](Shape s) {
         return Shape{s[0], 3, 2, 2};
       })},
      {"reshape_append", Reshape("shape { dim: 1 dim: 1 } axis: -1"), bottom, ShapesOf([](Shape s) {
         return Shape{s[0], 3, 4, 1, 1};
       })},
      {"silence",
       "type: 'Silence'",
       {{{2, 3}}, {{4}}},
       [](const Arrays&, const Arrays&) { return Arrays{}; },
       0},
  };
}
const bool kShapeOpCases = AddLayerCases(ShapeOpCases);

namespace {

Shape ReshapedTo(const std::string& param) {
  const LayerCase row{"case", Reshape(param), {{{2, 3, 4}}}, nullptr};
  LayerRun run(row);
  run.Forward();
  return run.tops()[0]->shape();
}

TEST(Reshape, InsertsAxesWithoutReplacingAny) {
  EXPECT_THAT(ReshapedTo("shape { dim: 1 } axis: 1 num_axes: 0"), ElementsAre(2, 1, 3, 4));
}

TEST(Reshape, NamesInvalidShapes) {
  EXPECT_THROW(ReshapedTo("shape { dim: 5 dim: -1 }"), Error);
  EXPECT_THROW(ReshapedTo("shape { dim: -1 dim: -1 }"), Error);
  EXPECT_THROW(ReshapedTo("shape { dim: 7 }"), Error);
  EXPECT_THROW(ReshapedTo("shape { dim: 2 } axis: 9"), Error);
}

TEST(ShapeOps, CannotRunInPlace) {
  for (const LayerCase& row : ShapeOpCases()) {
    LayerRun run(row);
    EXPECT_FALSE(run.layer().traits().allows_in_place) << row.name;
  }
}

TEST(Split, SharesItsBottomsMemory) {
  const LayerCase row = ShapeOpCases()[0];
  LayerRun run(row);
  run.Forward();
  EXPECT_EQ(run.tops()[2]->data_ptr(), run.bottoms()[0]->data_ptr());
}

}  // namespace
}  // namespace hearth::caffe
