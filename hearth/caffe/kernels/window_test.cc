#include "hearth/caffe/kernels/window.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/text_reader.h"

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Window WindowOf(const std::string& text, int64_t axes) {
  ConvolutionParameter param;
  ParseText(text, "test", &param);
  return ReadWindow(param, axes);
}

std::string WindowError(const std::string& text, int64_t axes) {
  try {
    WindowOf(text, axes);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(ReadWindow, RepeatsOneValueForAllAxes) {
  const Window window = WindowOf("kernel_size: 3 pad: 1", 3);
  EXPECT_THAT(window.kernel, ElementsAre(3, 3, 3));
  EXPECT_THAT(window.pad, ElementsAre(1, 1, 1));
  EXPECT_THAT(window.stride, ElementsAre(1, 1, 1));
  EXPECT_THAT(window.dilation, ElementsAre(1, 1, 1));
}

TEST(ReadWindow, ReadsOneValuePerAxis) {
  EXPECT_THAT(WindowOf("kernel_size: 3 kernel_size: 5 stride: 1 stride: 2", 2).stride,
              ElementsAre(1, 2));
}

TEST(ReadWindow, ReadsHeightAndWidthByName) {
  const Window window = WindowOf("kernel_h: 3 kernel_w: 5 stride_h: 2 stride_w: 1 pad_w: 2", 2);
  EXPECT_THAT(window.kernel, ElementsAre(3, 5));
  EXPECT_THAT(window.stride, ElementsAre(2, 1));
  EXPECT_THAT(window.pad, ElementsAre(0, 2));
}

TEST(ReadWindow, NeedsNoKernelWithoutSpatialAxes) {
  EXPECT_THAT(WindowOf("", 0).kernel, IsEmpty());
}

TEST(ReadWindow, NamesTheMismatchedField) {
  EXPECT_THAT(WindowError("", 2), "set kernel_size");
  EXPECT_THAT(WindowError("kernel_size: 3 pad: 1 pad: 2", 3), HasSubstr("pad has 2 values"));
  EXPECT_THAT(WindowError("kernel_h: 3 kernel_w: 3", 1),
              HasSubstr("kernel_h and kernel_w are for 2"));
  EXPECT_THAT(WindowError("kernel_size: 1 kernel_h: 3 kernel_w: 3", 2),
              HasSubstr("either kernel or"));
  EXPECT_THAT(WindowError("kernel_size: 3 stride: 0", 2), HasSubstr("stride 0"));
  // The product of the two would overflow 64 bits.
  EXPECT_THAT(WindowError("kernel_size: 4294967295 dilation: 4294967295", 2),
              HasSubstr("must not be above 2147483647"));
}

}  // namespace
}  // namespace hearth::caffe
