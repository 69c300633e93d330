#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Pyramid {
  int levels = 1;
  bool average = false;

  // Returns the value of one bin. The divisor of an average counts padding, but no positions beyond
  // the padded image.
  float Bin(const Array& x, int64_t plane, int64_t bins, int64_t row, int64_t column) const {
    const int64_t position[] = {row, column};
    int64_t begin[2], end[2];
    double divisor = 1;
    for (int axis = 0; axis < 2; ++axis) {
      const int64_t size = x.shape[2 + axis];
      const int64_t kernel = (size + bins - 1) / bins, pad = (kernel * bins - size + 1) / 2;
      const int64_t from = position[axis] * kernel - pad;
      divisor *= static_cast<double>(std::min(from + kernel, size + pad) - from);
      begin[axis] = std::max<int64_t>(from, 0);
      end[axis] = std::min(from + kernel, size);
    }
    double sum = 0, largest = -std::numeric_limits<double>::infinity();
    for (int64_t i = begin[0]; i < end[0]; ++i)
      for (int64_t j = begin[1]; j < end[1]; ++j) {
        const double value = x.values[(plane * x.shape[2] + i) * x.shape[3] + j];
        sum += value;
        largest = std::max(largest, value);
      }
    return static_cast<float>(average ? sum / divisor : largest);
  }

  Arrays operator()(const Arrays& bottoms, const Arrays&) const {
    const Array& x = bottoms[0];
    Array y({x.shape[0], 0});
    for (int64_t n = 0; n < x.shape[0]; ++n)
      for (int level = 0; level < levels; ++level)
        for (int64_t c = 0; c < x.shape[1]; ++c) {
          const int64_t bins = 1 << level;
          for (int64_t i = 0; i < bins * bins; ++i) {
            y.values.push_back(Bin(x, n * x.shape[1] + c, bins, i / bins, i % bins));
          }
        }
    y.shape[1] = static_cast<int64_t>(y.values.size()) / x.shape[0];
    if (levels == 1) y.shape = {x.shape[0], x.shape[1], 1, 1};
    return {y};
  }
};

LayerCase PyramidRow(std::string name, const std::string& param, Pyramid pyramid) {
  return {std::move(name),
          "type: 'SPP' spp_param { pyramid_height: " + std::to_string(pyramid.levels) + " " +
              param + " }",
          {{{2, 2, 5, 6}}},
          pyramid};
}

}  // namespace

std::vector<LayerCase> SppCases() {
  return {
      PyramidRow("spp_one_level", "", {1}),
      PyramidRow("spp_two_levels", "", {2}),
      PyramidRow("spp_average", "pool: AVE", {2, true}),
  };
}
const bool kSppCases = AddLayerCases(SppCases);

namespace {

TEST(Spp, AcceptsImagesOfAnotherSize) {
  const LayerCase row = PyramidRow("case", "", {3});
  LayerRun run(row);
  for (const int64_t size : {8, 16, 7}) {
    run.bottoms()[0]->Reshape({1, 2, size, size});
    run.bottoms()[0]->data().copy_(Randn({1, 2, size, size}));
    run.Forward();
    EXPECT_EQ(run.TopValues()[0].values, run.Expected()[0].values) << size;
    EXPECT_THAT(run.tops()[0]->shape(), ElementsAre(1, 2 * 21));
  }
}

TEST(Spp, NamesAnImageThatIsTooSmall) {
  const LayerCase row = PyramidRow("case", "", {3});
  LayerRun run(row);
  run.bottoms()[0]->Reshape({1, 2, 5, 8});
  try {
    run.Forward();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("5 values cannot be divided into 4 bins"));
  }
}

TEST(Spp, RequiresAPyramidHeight) {
  const LayerCase row{"case", "type: 'SPP'", {{{1, 1, 2, 2}}}, nullptr};
  EXPECT_THROW(LayerRun(row).Forward(), Error);
}

}  // namespace
}  // namespace hearth::caffe
