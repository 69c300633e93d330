#include "hearth/caffe/proto/copy_fields.h"

#include <gmock/gmock.h>

#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/caffe/proto/text_writer.h"

namespace hearth::caffe {
namespace {

TEST(CopyFields, CopiesOnlyFieldsThatBothTypesHave) {
  V1LayerParameter old;
  // Both messages have fields named type and param, but of different types.
  ParseText(
      "name: 'c' type: RELU param: 'w' blobs_lr: 2 bottom: 'x' bottom: 'y' loss_weight: 0.5 "
      "convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: 'xavier' } } "
      "include { phase: TEST stage: 's' }",
      "old", &old);
  LayerParameter layer;
  CopyFields(old, &layer);
  LayerParameter expected;
  ParseText(
      "name: 'c' bottom: 'x' bottom: 'y' loss_weight: 0.5 "
      "convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: 'xavier' } } "
      "include { phase: TEST stage: 's' }",
      "new", &expected);
  EXPECT_EQ(WriteText(layer), WriteText(expected));
}

TEST(CopyField, AppendsASingularValueToARepeatedField) {
  V0LayerParameter old;
  old.set_pad(2);
  ConvolutionParameter param;
  CopyField(old, *old.descriptor().Find("pad"), *param.descriptor().Find("pad"), &param);
  EXPECT_THAT(param.pad(), testing::ElementsAre(2u));
}

}  // namespace
}  // namespace hearth::caffe
