#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Array FilterRows(const Array& x, const std::vector<int64_t>& rows) {
  Shape shape = x.shape;
  shape[0] = 0;
  Array y(shape);
  for (const int64_t row : rows) {
    const int64_t size = x.Count() / x.shape[0];
    y.values.insert(y.values.end(), x.values.begin() + row * size,
                    x.values.begin() + (row + 1) * size);
    ++y.shape[0];
  }
  return y;
}

Arrays Reindexed(const Arrays& bottoms, const Arrays&) {
  return {FilterRows(bottoms[0], {bottoms[1].values.begin(), bottoms[1].values.end()})};
}

Arrays Filtered(const Arrays& bottoms, const Arrays&) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < bottoms.back().Count(); ++i) {
    if (bottoms.back().values[i] != 0) rows.push_back(i);
  }
  Arrays tops;
  for (size_t i = 0; i + 1 < bottoms.size(); ++i) tops.push_back(FilterRows(bottoms[i], rows));
  return tops;
}

}  // namespace

std::vector<LayerCase> FilterReindexCases() {
  LayerCase reindex{
      "batch_reindex", "type: 'BatchReindex'", {{{3, 2, 2}}, {{7}, 0, 0, 3}}, Reindexed};
  reindex.without_gradient = {1};
  reindex.fixed_rows = true;  // with fewer rows, some indices would be out of range
  LayerCase filter{"filter",
                   "type: 'Filter' top: 'a' top: 'b'",
                   {{{5, 2}}, {{5, 1, 3}}, {{5}, 0, 0, 2}},
                   Filtered,
                   2};
  filter.without_gradient = {2};
  LayerCase one = filter;
  one.name = "filter_one";
  one.layer = "type: 'Filter' top: 'a'";
  one.bottoms = {{{6, 2}}, {{6, 1, 1}, 0, 0, 2}};
  one.without_gradient = {1};
  one.tops = 1;
  return {reindex, filter, one};
}
const bool kFilterReindexCases = AddLayerCases(FilterReindexCases);

namespace {

std::string FilterError(const LayerCase& row, const std::function<void(const Blobs&)>& change) {
  try {
    LayerRun run(row);
    change(run.bottoms());
    run.Forward();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(BatchReindex, NamesAnInvalidIndex) {
  const auto set = [](float value) {
    return [value](const Blobs& bottoms) { bottoms[1]->data_ptr()[2] = value; };
  };
  const LayerCase row = FilterReindexCases()[0];
  EXPECT_THAT(FilterError(row, set(3)),
              HasSubstr("index 3 at position 2 is not a row of a bottom of shape 3 2 2 (12)"));
  EXPECT_THAT(FilterError(row, set(-1)), HasSubstr("index -1 at position 2"));
}

TEST(Filter, NamesMismatchedShapes) {
  const LayerCase row = FilterReindexCases()[1];
  const auto reshape = [](size_t bottom, const Shape& shape) {
    return [=](const Blobs& bottoms) { bottoms[bottom]->Reshape(shape); };
  };
  EXPECT_THAT(FilterError(row, reshape(1, {4, 2})),
              HasSubstr("the last bottom selects among 5 rows, but bottom 1 has shape 4 2 (8)"));
  EXPECT_THAT(FilterError(row, reshape(2, {5, 2})), HasSubstr("but has shape 5 2 (10)"));
  LayerCase too_few = row;
  too_few.tops = 1;
  EXPECT_THAT(FilterError(too_few, [](const Blobs&) {}), HasSubstr("not 3 bottoms"));
}

TEST(Filter, MaySelectNoRow) {
  const LayerCase row = FilterReindexCases()[2];
  LayerRun run(row);
  run.bottoms()[1]->data().zero_();
  run.Forward();
  EXPECT_THAT(run.tops()[0]->shape(), ElementsAre(0, 2));
  run.Backward({});
  EXPECT_THAT(ListOf(run.bottoms()[0]->diff()), testing::Each(0));
}

TEST(FilterReindex, RejectsAGradientForTheSelection) {
  for (const LayerCase& row : FilterReindexCases()) {
    LayerRun run(row);
    run.Forward();
    const std::vector<bool> all(run.bottoms().size(), true);
    EXPECT_THROW(run.layer().Backward(run.tops(), all, run.bottoms()), Error) << row.name;
    const int last = static_cast<int>(run.bottoms().size()) - 1;
    EXPECT_FALSE(run.layer().traits().AllowsForceBackward(last)) << row.name;
    EXPECT_TRUE(run.layer().traits().AllowsForceBackward(last - 1)) << row.name;
  }
}

}  // namespace
}  // namespace hearth::caffe
