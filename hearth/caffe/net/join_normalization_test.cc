#include "hearth/caffe/net/join_normalization.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace hearth::caffe {
namespace {

// A layer that does nothing, for graphs that never run.
class IdleLayer : public Layer {
 public:
  IdleLayer() : Layer(LayerParameter(), NetContext()) {}
  void Reshape(const Blobs&, const Blobs&) override {}
  void Forward(const Blobs&, const Blobs&) override {}
  void Backward(const Blobs&, const std::vector<bool>&, const Blobs&) override {}
};

class IdleNormalization : public IdleLayer, public Normalization {
 public:
  explicit IdleNormalization(bool of_minibatch = true) : of_minibatch_(of_minibatch) {}
  bool has_minibatch_statistics() const override { return of_minibatch_; }
  int64_t channels() const override { return 8; }
  Gradients BackwardScaled(const Tensor&, const Tensor&) override { return {}; }

 private:
  const bool of_minibatch_;
};

class IdleScale : public IdleLayer, public ScalesNormalized {
 public:
  explicit IdleScale(int64_t channels = 8) : channels_(channels) {}
  bool scales_channels(int64_t channels) const override { return channels == channels_; }
  void set_normalization(Normalization* normalization) override { joined = normalization; }

  Normalization* joined = nullptr;

 private:
  const int64_t channels_;
};

// A graph of layers with one bottom and one top.
class JoinNormalizationsTest : public ::testing::Test {
 protected:
  JoinNormalizationsTest() {
    for (int i = 0; i < 10; ++i) graph_.blobs.push_back(std::make_unique<Blob>());
  }

  template <typename Type>
  Type* Add(std::unique_ptr<Type> layer, int bottom, int top) {
    Type* const added = layer.get();
    NetLayer entry;
    entry.layer = std::move(layer);
    entry.bottom = {graph_.blobs[static_cast<size_t>(bottom)].get()};
    entry.top = {graph_.blobs[static_cast<size_t>(top)].get()};
    entry.bottom_ids = {bottom};
    entry.top_ids = {top};
    entry.loss_weights = {0};
    entry.bottom_need_backward = {true};
    entry.need_backward = true;
    graph_.layers.push_back(std::move(entry));
    return added;
  }
  // Adds a normalization from blob 0 to blob 1, and a scale layer that reads blob 1.
  void AddPair() {
    normalization_ = Add(std::make_unique<IdleNormalization>(), 0, 1);
    scale_ = Add(std::make_unique<IdleScale>(), 1, 2);
  }

  NetGraph graph_;
  IdleNormalization* normalization_ = nullptr;
  IdleScale* scale_ = nullptr;
};

TEST_F(JoinNormalizationsTest, JoinsAScaleLayerWithTheNormalizationThatItReads) {
  AddPair();
  Add(std::make_unique<IdleLayer>(), 2, 3);
  JoinNormalizations(graph_);
  EXPECT_EQ(scale_->joined, normalization_);
}

TEST_F(JoinNormalizationsTest, OtherLayersMayBeBetweenThem) {
  normalization_ = Add(std::make_unique<IdleNormalization>(), 0, 1);
  Add(std::make_unique<IdleLayer>(), 4, 5);
  scale_ = Add(std::make_unique<IdleScale>(), 1, 2);
  JoinNormalizations(graph_);
  EXPECT_EQ(scale_->joined, normalization_);
}

// If the layers were joined, the second reader's gradient would be lost.
TEST_F(JoinNormalizationsTest, LeavesANormalizationWithASecondReader) {
  for (const bool before : {true, false}) {
    graph_.layers.clear();
    Add(std::make_unique<IdleNormalization>(), 0, 1);
    if (before) Add(std::make_unique<IdleLayer>(), 1, 3);
    scale_ = Add(std::make_unique<IdleScale>(), 1, 2);
    if (!before) Add(std::make_unique<IdleLayer>(), 1, 3);
    JoinNormalizations(graph_);
    EXPECT_EQ(scale_->joined, nullptr);
  }
}

TEST_F(JoinNormalizationsTest, ReadersAfterAnInPlaceScaleReadItsResult) {
  normalization_ = Add(std::make_unique<IdleNormalization>(), 0, 1);
  scale_ = Add(std::make_unique<IdleScale>(), 1, 1);
  Add(std::make_unique<IdleLayer>(), 1, 3);
  Add(std::make_unique<IdleLayer>(), 1, 4);
  JoinNormalizations(graph_);
  EXPECT_EQ(scale_->joined, normalization_);
}

TEST_F(JoinNormalizationsTest, LeavesLayersWhoseGradientIsNotPassedOn) {
  for (int fault = 0; fault < 4; ++fault) {
    graph_.layers.clear();
    AddPair();
    NetLayer& first = graph_.layers[0];
    NetLayer& second = graph_.layers[1];
    if (fault == 0) first.loss_weights = {1};
    if (fault == 1) first.need_backward = false;
    if (fault == 2) second.bottom_need_backward = {false};
    if (fault == 3) second.bottom.push_back(graph_.blobs[5].get());
    JoinNormalizations(graph_);
    EXPECT_EQ(scale_->joined, nullptr) << fault;
  }
}

TEST_F(JoinNormalizationsTest, LeavesRunningStatisticsAndOtherScales) {
  Add(std::make_unique<IdleNormalization>(/*of_minibatch=*/false), 0, 1);
  IdleScale* const of_running = Add(std::make_unique<IdleScale>(), 1, 2);
  Add(std::make_unique<IdleNormalization>(), 2, 3);
  IdleScale* const of_other_channels = Add(std::make_unique<IdleScale>(/*channels=*/4), 3, 4);
  Add(std::make_unique<IdleNormalization>(), 4, 5);
  Add(std::make_unique<IdleLayer>(), 5, 6);
  JoinNormalizations(graph_);
  EXPECT_EQ(of_running->joined, nullptr);
  EXPECT_EQ(of_other_channels->joined, nullptr);
}

}  // namespace
}  // namespace hearth::caffe
