#include <gmock/gmock.h>

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {
namespace {

// Reference of LRN. The window extends `across` channels and `within` rows and columns to each
// side.
auto LrnReference(int64_t across, int64_t within, float k, float alpha, float beta) {
  return [=](const Arrays& bottoms, const Arrays&) {
    const Array& x = bottoms[0];
    Array y(x.shape);
    for (int64_t n = 0; n < x.shape[0]; ++n)
      for (int64_t c = 0; c < x.shape[1]; ++c)
        for (int64_t i = 0; i < x.shape[2]; ++i)
          for (int64_t j = 0; j < x.shape[3]; ++j) {
            double sum = 0;
            for (int64_t d = c - across; d <= c + across; ++d)
              for (int64_t a = i - within; a <= i + within; ++a)
                for (int64_t b = j - within; b <= j + within; ++b) {
                  if (d < 0 || a < 0 || b < 0) continue;
                  if (d >= x.shape[1] || a >= x.shape[2] || b >= x.shape[3]) continue;
                  sum += std::pow(x.at({n, d, a, b}), 2);
                }
            const double size = (2 * across + 1) * (2 * within + 1) * (2 * within + 1);
            y.at({n, c, i, j}) =
                static_cast<float>(x.at({n, c, i, j}) * std::pow(k + alpha / size * sum, -beta));
          }
    return Arrays{y};
  };
}

std::string LrnText(const std::string& param) { return "type: 'LRN' lrn_param { " + param + " }"; }

}  // namespace

std::vector<LayerCase> LrnCases() {
  const std::vector<CaseInput> image = {{{2, 5, 3, 4}}};
  return {
      {"lrn_across", LrnText("local_size: 3 alpha: 2 k: 1.5"), image,
       LrnReference(1, 0, 1.5f, 2, 0.75f)},
      {"lrn_across_wider_than_channels", LrnText("local_size: 13 alpha: 2"), image,
       LrnReference(6, 0, 1, 2, 0.75f)},
      {"lrn_other_beta", LrnText("alpha: 1 beta: 0.4"), image, LrnReference(2, 0, 1, 1, 0.4f)},
      // Within a channel, k has no effect.
      {"lrn_within", LrnText("norm_region: WITHIN_CHANNEL local_size: 3 alpha: 2 k: 9"), image,
       LrnReference(0, 1, 1, 2, 0.75f)},
      {"lrn_within_5", LrnText("norm_region: WITHIN_CHANNEL alpha: 3 beta: 0.5"), image,
       LrnReference(0, 2, 1, 3, 0.5f)},
  };
}
const bool kLrnCases = AddLayerCases(LrnCases);

namespace {

TEST(Lrn, RejectsAnEvenSize) {
  const LayerCase row{"case", LrnText("local_size: 4"), {{{1, 2, 3, 3}}}, nullptr};
  EXPECT_THROW(LayerRun run(row), Error);
}

}  // namespace
}  // namespace hearth::caffe
