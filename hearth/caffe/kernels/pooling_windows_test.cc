#include "hearth/caffe/kernels/pooling_windows.h"

#include <gtest/gtest.h>

#include "hearth/caffe/proto/text_reader.h"

namespace hearth::caffe {
namespace {

PoolingAxis ReadAxis(const std::string& text, char name, int64_t inputs) {
  PoolingParameter param;
  ParseText(text, "test", &param);
  return PoolingAxis::Read(param, name, inputs);
}

TEST(PoolingAxis, RoundsTheNumberOfWindowsUpByDefault) {
  EXPECT_EQ(ReadAxis("kernel_size: 3 stride: 2", 'h', 8).outputs, 4);
  EXPECT_EQ(ReadAxis("kernel_size: 3 stride: 2 round_mode: FLOOR", 'h', 8).outputs, 3);
}

// The published sizes of AlexNet's pool5 and of GoogLeNet's last inception pools.
TEST(PoolingAxis, HasTheSizesOfPublishedNets) {
  EXPECT_EQ(ReadAxis("kernel_size: 3 stride: 2", 'w', 13).outputs, 6);
  EXPECT_EQ(ReadAxis("kernel_size: 3 stride: 2", 'w', 14).outputs, 7);
  EXPECT_EQ(ReadAxis("kernel_size: 3 stride: 1 pad: 1", 'w', 7).outputs, 7);
}

TEST(PoolingAxis, DropsAWindowAfterTheImageOnlyWithPadding) {
  EXPECT_EQ(ReadAxis("kernel_size: 2 stride: 2 pad: 1", 'h', 5).outputs, 3);
  EXPECT_EQ(ReadAxis("kernel_size: 2 stride: 3", 'h', 9).outputs,
            4);  // the last window begins at 9
  EXPECT_EQ(ReadAxis("kernel_size: 2 stride: 3 pad: 1", 'h', 8).outputs, 3);
}

TEST(PoolingAxis, DropsAWindowAfterTheImageIfTheOtherAxisIsPadded) {
  const std::string text = "kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 3 ";
  EXPECT_EQ(ReadAxis(text + "pad_h: 1 pad_w: 0", 'w', 6).outputs,
            2);  // the last window would begin at 6
  EXPECT_EQ(ReadAxis(text + "pad_h: 0 pad_w: 0", 'w', 6).outputs, 3);
}

TEST(PoolingAxis, ReadsHeightAndWidthByName) {
  const std::string text = "kernel_h: 3 kernel_w: 2 stride_h: 1 stride_w: 2 pad_h: 1 pad_w: 0";
  EXPECT_EQ(ReadAxis(text, 'h', 5).outputs, 5);
  EXPECT_EQ(ReadAxis(text, 'w', 6).outputs, 3);
}

TEST(PoolingAxis, CoversEverythingWithGlobalPooling) {
  const PoolingAxis axis = ReadAxis("global_pooling: true", 'h', 9);
  EXPECT_EQ(axis.outputs, 1);
  EXPECT_EQ(axis.Clipped(0).end, 9);
}

TEST(PoolingAxis, IncludesPaddingInTheSizeOfAWindow) {
  const PoolingAxis axis = ReadAxis("kernel_size: 3 stride: 2 pad: 1", 'h', 6);
  EXPECT_EQ(axis.Clipped(0).begin, 0);
  EXPECT_EQ(axis.Clipped(0).end, 2);
  EXPECT_EQ(axis.PaddedSize(0), 3);
  EXPECT_EQ(axis.PaddedSize(3), 2);  // from 5 to the end of the padding at 7
}

}  // namespace
}  // namespace hearth::caffe
