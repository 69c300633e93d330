#include "hearth/trainer/job/describe_exception.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "hearth/caffe/solver/iteration_error.h"

namespace hearth::trainer {
namespace {

template <typename Exception>
rendezvous::Failure Describe(const Exception& exception) {
  return DescribeException(std::make_exception_ptr(exception));
}

TEST(DescribeExceptionTest, KeepsTheCodeMessageAndLayerOfAnError) {
  const rendezvous::Failure failure = Describe(caffe::LayerError(
      ErrorCode::kInvalidArgument, "layer 'conv1': kernel is too large", "conv1"));
  EXPECT_EQ(failure.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(failure.layer, "conv1");
  EXPECT_EQ(failure.iteration, -1);
}

TEST(DescribeExceptionTest, KeepsTheIterationOfAnError) {
  const rendezvous::Failure failure =
      Describe(caffe::IterationError(ErrorCode::kDataLoss, 7, "the loss is nan", "ip1"));
  EXPECT_EQ(failure.iteration, 7);
  EXPECT_EQ(failure.layer, "ip1");
  EXPECT_EQ(failure.message, "iteration 7: the loss is nan");
}

TEST(DescribeExceptionTest, DescribesExceptionsOfAnyType) {
  EXPECT_EQ(Describe(std::bad_alloc()).code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(Describe(std::runtime_error("shapes differ")).message, "shapes differ");
  EXPECT_EQ(Describe(42).code, ErrorCode::kInternal);
  EXPECT_FALSE(Describe(42).message.empty());
}

TEST(DescribeExceptionTest, TheLayerIsNotParsedFromTheMessage) {
  const Error error(ErrorCode::kInvalidArgument, "layer 'conv1' is not in the file");
  EXPECT_EQ(Describe(error).layer, "");
}

}  // namespace
}  // namespace hearth::trainer
