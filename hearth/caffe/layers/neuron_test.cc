#include "hearth/caffe/layers/neuron.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

// y = x^2. The gradient is computed from the input as 2x, or from the output as 2 sqrt(y).
class SquareLayer : public NeuronLayer {
 public:
  explicit SquareLayer(bool needs_input)
      : NeuronLayer(LayerParameter(), NetContext()), needs_input_(needs_input) {}

 protected:
  void Apply(const Tensor& x, Tensor& y) override {
    Map(
        y, [](float value) { return value * value; }, x);
  }
  void Gradient(const Tensor& dy, const Tensor& x, const Tensor& y, Tensor& dx) override {
    if (needs_input_) {
      Map(
          dx, [](float gradient, float value) { return gradient * 2 * value; }, dy, x);
    } else {
      Map(
          dx, [](float gradient, float value) { return gradient * 2 * std::sqrt(value); }, dy, y);
    }
  }
  void ApplyOnDevice(const Tensor&, Tensor&) override { Fail(); }
  void GradientOnDevice(const Tensor&, const Tensor&, const Tensor&, Tensor&) override { Fail(); }
  bool GradientNeedsInput() const override { return needs_input_; }

 private:
  static void Fail() { ADD_FAILURE() << "there is no device"; }

  const bool needs_input_;
};

class NeuronLayerTest : public ::testing::TestWithParam<bool> {
 protected:
  static void Set(Blob& blob, const std::vector<float>& values) {
    blob.Reshape({static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), blob.data_ptr());
  }
  static void SetDiff(Blob& blob, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), blob.diff_ptr());
  }
  void Forward(Blob& bottom, Blob& top) {
    layer_.Reshape({&bottom}, {&top});
    layer_.Forward({&bottom}, {&top});
  }

  SquareLayer layer_{GetParam()};
  Blob bottom_, top_;
};

TEST_P(NeuronLayerTest, ComputesItsGradientFromInputOrOutput) {
  Set(bottom_, {1, 2, 3});
  Forward(bottom_, top_);
  EXPECT_EQ(ListOf(top_.data()), (std::vector<float>{1, 4, 9}));
  SetDiff(top_, {1, 1, 10});
  layer_.Backward({&top_}, {true}, {&bottom_});
  EXPECT_EQ(ListOf(bottom_.diff()), (std::vector<float>{2, 4, 60}));
  EXPECT_EQ(ListOf(bottom_.data()), (std::vector<float>{1, 2, 3}));
}

TEST_P(NeuronLayerTest, KeepsTheInputIfItWorksInPlace) {
  Set(bottom_, {1, 2, 3});
  Forward(bottom_, bottom_);
  EXPECT_EQ(ListOf(bottom_.data()), (std::vector<float>{1, 4, 9}));
  SetDiff(bottom_, {1, 1, 10});
  layer_.Backward({&bottom_}, {true}, {&bottom_});
  EXPECT_EQ(ListOf(bottom_.diff()), (std::vector<float>{2, 4, 60}));
}

TEST_P(NeuronLayerTest, KeepsTheOutputIfALaterLayerOverwritesIt) {
  layer_.set_top_overwritten(true);
  Set(bottom_, {1, 2, 3});
  Forward(bottom_, top_);
  top_.data().fill_(-1);
  SetDiff(top_, {1, 1, 10});
  layer_.Backward({&top_}, {true}, {&bottom_});
  EXPECT_EQ(ListOf(bottom_.diff()), (std::vector<float>{2, 4, 60}));
}

TEST_P(NeuronLayerTest, FollowsASmallerMinibatch) {
  for (const bool in_place : {false, true}) {
    Blob bottom, other;
    Blob& top = in_place ? bottom : other;
    Set(bottom, {1, 2, 3});
    Forward(bottom, top);
    Set(bottom, {5, 6});
    Forward(bottom, top);
    EXPECT_EQ(ListOf(top.data()), (std::vector<float>{25, 36}));
    SetDiff(top, {1, 1});
    layer_.Backward({&top}, {true}, {&bottom});
    EXPECT_EQ(ListOf(bottom.diff()), (std::vector<float>{10, 12}));
  }
}

TEST_P(NeuronLayerTest, LeavesAnUnrequestedGradient) {
  Set(bottom_, {1, 2, 3});
  Forward(bottom_, top_);
  SetDiff(top_, {1, 1, 1});
  SetDiff(bottom_, {7, 8, 9});
  layer_.Backward({&top_}, {false}, {&bottom_});
  EXPECT_EQ(ListOf(bottom_.diff()), (std::vector<float>{7, 8, 9}));
}
INSTANTIATE_TEST_SUITE_P(Needs, NeuronLayerTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Input" : "Output"; });

}  // namespace
}  // namespace hearth::caffe
