#include "hearth/caffe/proto/nearest.h"

#include <gmock/gmock.h>

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NearestNames, SortsByDistance) {
  EXPECT_THAT(NearestNames("num_outptu", {"num_axes", "num_output", "output"}),
              ElementsAre("num_output"));
  EXPECT_THAT(NearestNames("kernel_z", {"kernel_size", "kernel_w", "kernel_h"}),
              ElementsAre("kernel_w", "kernel_h"));
}

TEST(NearestNames, IgnoresCase) {
  EXPECT_THAT(NearestNames("convolution", {"Convolution", "Deconvolution"}),
              ElementsAre("Convolution", "Deconvolution"));
}

TEST(NearestNames, IsEmptyIfNothingIsNear) {
  EXPECT_THAT(NearestNames("zzzzzz", {"Convolution"}), IsEmpty());
  EXPECT_EQ(DidYouMean("zzzzzz", {"Convolution"}), "");
}

TEST(DidYouMean, NamesTheCandidates) {
  EXPECT_EQ(DidYouMean("Poling", {"Pooling", "Power"}), "; did you mean Pooling?");
}

}  // namespace
}  // namespace hearth::caffe
