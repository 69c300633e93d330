#include "hearth/caffe/net/work_threads.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <string>

#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

// Uses four threads on any machine.
class WorkThreadsTest : public testing::Test {
 protected:
  WorkThreadsTest() { SetThreadCount(4); }
  ~WorkThreadsTest() override { SetThreadCount(before_); }

  // Returns for each layer, by name, the number of threads during its Forward.
  static std::map<std::string, int> ThreadsIn(const std::string& text) {
    Net net(ParseNet(text, "net"), ContextOf(TRAIN), TestRegistry());
    std::map<std::string, int> threads;
    for (const NetLayer& layer : net.layers()) {
      const WorkThreads scope(layer);
      threads[layer.layer->name()] = ThreadCount();
    }
    return threads;
  }

 private:
  const int before_ = ThreadCount();
};

std::string Input(const std::string& dims) {
  return "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { " + dims + " } } }";
}

std::string ProductNet(int outputs, bool transpose) {
  return fmt::format(
      "layer {{ name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param {{ "
      "num_output: {} transpose: {} }} }} layer {{ name: 'relu' type: 'ReLU' bottom: 'y' top: 'y' "
      "}}",
      outputs, transpose);
}

TEST_F(WorkThreadsTest, SmallLayersUseOneThread) {
  auto threads = ThreadsIn(Input("dim: 10 dim: 4") + ProductNet(2, false));
  EXPECT_EQ(threads["ip"], 1);
  EXPECT_EQ(threads["relu"], 1);
  EXPECT_EQ(ThreadCount(), 4);
}

TEST_F(WorkThreadsTest, LargeProductsUseAll) {
  for (const bool transpose : {false, true}) {
    auto threads = ThreadsIn(Input("dim: 64 dim: 784") + ProductNet(100, transpose));
    EXPECT_EQ(threads["ip"], 4);
    EXPECT_EQ(threads["relu"], 1);
  }
  EXPECT_EQ(ThreadsIn(Input("dim: 1000 dim: 4") + ProductNet(1000, false))["relu"], 4);
}

TEST_F(WorkThreadsTest, ConvolutionsCountTheirPositions) {
  const auto convolution = [](int size) {
    return Input(fmt::format("dim: 1 dim: 3 dim: {0} dim: {0}", size)) +
           "layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { "
           "num_output: 8 kernel_size: 3 } }";
  };
  EXPECT_EQ(ThreadsIn(convolution(8))["conv"], 1);
  EXPECT_EQ(ThreadsIn(convolution(100))["conv"], 4);
}

TEST_F(WorkThreadsTest, UnknownLayersUseAll) {
  EXPECT_EQ(ThreadsIn(Input("dim: 10 dim: 4"))["x"], 4);
}

// A layer that records the number of threads during Forward.
class ThreadCountLayer : public Layer {
 public:
  using Layer::Layer;
  void Reshape(const Blobs& bottom, const Blobs& top) override { top[0]->ReshapeLike(*bottom[0]); }
  void Forward(const Blobs&, const Blobs& top) override {
    top[0]->data().fill_(static_cast<float>(omp_get_max_threads()));
  }
  void Backward(const Blobs&, const std::vector<bool>&, const Blobs& bottom) override {
    bottom[0]->diff().fill_(static_cast<float>(omp_get_max_threads()));
  }
};

TEST_F(WorkThreadsTest, ForwardAndBackwardUseThem) {
  LayerRegistry registry = LayerRegistry::Default();
  registry.Add<ThreadCountLayer>("ThreadCount");
  for (const auto& [rows, threads] : {std::pair{10, 1}, std::pair{100000, 4}}) {
    const std::string text =
        "force_backward: true " + Input(fmt::format("dim: {} dim: 4", rows)) +
        "layer { name: 'count' type: 'ThreadCount' bottom: 'x' top: 'y' loss_weight: 1 }";
    Net net(ParseNet(text, "net"), ContextOf(TRAIN), registry);
    net.Forward();
    net.Backward();
    EXPECT_EQ(net.blob("y").data_ptr()[0], threads);
    EXPECT_EQ(net.blob("x").diff_ptr()[0], threads);
  }
}

}  // namespace
}  // namespace hearth::caffe
