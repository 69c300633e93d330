#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::HasSubstr;

// Calls f(index in `part`, position in the whole array) for every value of `part`, the slice of the
// whole array that starts at `begin` along `axis`.
template <typename Function>
void ForEachPixel(Array& part, size_t axis, int64_t begin, Function f) {
  Shape position(part.shape.size());
  for (int64_t i = 0; i < part.Count(); ++i) {
    for (int64_t a = static_cast<int64_t>(position.size()) - 1, rest = i; a >= 0; --a) {
      position[a] = rest % part.shape[a];
      rest /= part.shape[a];
    }
    Shape in_whole = position;
    in_whole[axis] += begin;
    f(i, in_whole);
  }
}

auto Concat(size_t axis) {
  return [axis](const Arrays& bottoms, const Arrays&) {
    Shape shape = bottoms[0].shape;
    shape[axis] = 0;
    for (const Array& x : bottoms) shape[axis] += x.shape[axis];
    Array y(shape);
    int64_t begin = 0;
    for (Array x : bottoms) {
      ForEachPixel(x, axis, begin, [&](int64_t i, const Shape& at) { y.at(at) = x.values[i]; });
      begin += x.shape[axis];
    }
    return Arrays{y};
  };
}

auto Slice(size_t axis, const std::vector<int64_t>& sizes) {
  return [=](const Arrays& bottoms, const Arrays&) {
    Arrays tops;
    int64_t begin = 0;
    for (const int64_t size : sizes) {
      Shape shape = bottoms[0].shape;
      shape[axis] = size;
      Array y(shape);
      ForEachPixel(y, axis, begin,
                   [&](int64_t i, const Shape& at) { y.values[i] = bottoms[0].at(at); });
      begin += size;
      tops.push_back(y);
    }
    return tops;
  };
}

}  // namespace

std::vector<LayerCase> ConcatSliceCases() {
  LayerCase rows{
      "concat_rows", "type: 'Concat' concat_param { axis: 0 }", {{{2, 3}}, {{1, 3}}}, Concat(0)};
  rows.fixed_rows = true;
  LayerCase cut_rows{
      "slice_rows", "type: 'Slice' slice_param { axis: 0 }", {{{4, 3}}}, Slice(0, {2, 2}), 2};
  cut_rows.fixed_rows = true;
  return {
      {"concat", "type: 'Concat'", {{{2, 1, 2}}, {{2, 3, 2}}, {{2, 2, 2}}}, Concat(1)},
      {"concat_one", "type: 'Concat'", {{{2, 3}}}, Concat(1)},
      {"concat_last_axis",
       "type: 'Concat' concat_param { axis: -1 }",
       {{{2, 2, 1}}, {{2, 2, 3}}},
       Concat(2)},
      {"concat_legacy",
       "type: 'Concat' concat_param { concat_dim: 1 }",
       {{{2, 1}}, {{2, 3}}},
       Concat(1)},
      rows,
      {"slice", "type: 'Slice'", {{{2, 6, 2}}}, Slice(1, {2, 2, 2}), 3},
      {"slice_one", "type: 'Slice'", {{{2, 6}}}, Slice(1, {6})},
      {"slice_points",
       "type: 'Slice' slice_param { axis: -1 slice_point: 1 slice_point: 4 }",
       {{{2, 3, 6}}},
       Slice(2, {1, 3, 2}),
       3},
      {"slice_legacy",
       "type: 'Slice' slice_param { slice_dim: 1 }",
       {{{2, 4}}},
       Slice(1, {2, 2}),
       2},
      cut_rows,
  };
}
const bool kConcatSliceCases = AddLayerCases(ConcatSliceCases);

namespace {

std::string RunError(const std::string& layer, std::vector<CaseInput> bottoms, int tops) {
  const LayerCase row{"case", layer, std::move(bottoms), nullptr, tops};
  try {
    LayerRun(row).Forward();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Concat, NamesShapesThatDifferInOtherAxes) {
  EXPECT_THAT(RunError("type: 'Concat'", {{{2, 3}}, {{4, 3}}}, 1),
              "bottoms of shape 2 3 (6) and 4 3 (12) differ in more than axis 1");
}

TEST(Slice, NamesInvalidPoints) {
  EXPECT_THAT(RunError("type: 'Slice'", {{{2, 5}}}, 2), HasSubstr("divided into 2 equal tops"));
  EXPECT_THAT(RunError("type: 'Slice' slice_param { slice_point: 1 }", {{{2, 5}}}, 3),
              HasSubstr("1 slice_points make 2 tops, but there are 3"));
  EXPECT_THAT(RunError("type: 'Slice' slice_param { slice_point: 5 }", {{{2, 5}}}, 2),
              HasSubstr("must increase and be above 0 and below 5"));
}

}  // namespace
}  // namespace hearth::caffe
