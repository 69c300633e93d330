#include <gmock/gmock.h>

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/element_testing.h"

namespace hearth::caffe {

std::vector<LayerCase> PowerCases() {
  const auto power = [](const char* name, double p, double scale, double shift, float low) {
    return ElementCase(
        name,
        fmt::format("type: 'Power' power_param {{ power: {} scale: {} shift: {} }}", p, scale,
                    shift),
        [=](double x) { return std::pow(shift + scale * x, p); }, low, 2);
  };
  return {
      power("power_linear", 1, -3, 0.5, -2),
      power("power_square", 2, 0.5, 1, -2),
      power("power_fraction", 0.7, 1.5, 0.25, 0.1f),
      power("power_zero", 0, 2, 1, -2),
      power("power_of_a_constant", 3, 0, 1.5, -2),
      ElementCase("exp", "type: 'Exp'", [](double x) { return std::exp(x); }),
      ElementCase("exp_base_2", "type: 'Exp' exp_param { base: 2 scale: 0.5 shift: 1 }",
                  [](double x) { return std::pow(2, 1 + 0.5 * x); }),
      ElementCase(
          "log", "type: 'Log'", [](double x) { return std::log(x); }, 0.2f, 3),
      ElementCase(
          "log_base_10", "type: 'Log' log_param { base: 10 scale: 2 shift: 1 }",
          [](double x) { return std::log10(1 + 2 * x); }, 0.2f, 3),
  };
}
const bool kPowerCases = AddLayerCases(PowerCases);

namespace {

TEST(Powers, RejectABaseWithoutALogarithm) {
  const LayerCase row{"case", "type: 'Log' log_param { base: 0 }", {{{2}}}, nullptr};
  EXPECT_THROW(LayerRun run(row), Error);
}

}  // namespace
}  // namespace hearth::caffe
