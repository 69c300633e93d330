// Checks that training allocates no buffers after its second iteration.
#include <gtest/gtest.h>

#include "hearth/caffe/solver/solver.h"
#include "hearth/caffe/tensor/tensor.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

constexpr char kPlannedNet[] = R"(
layer { name: "data" type: "DummyData" top: "data" top: "label"
        dummy_data_param { shape { dim: 4 dim: 3 dim: 16 dim: 16 } shape { dim: 4 }
                           data_filler { type: "gaussian" } data_filler { type: "constant" } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "norm1" type: "LRN" bottom: "conv1" top: "norm1" lrn_param { local_size: 3 } }
layer { name: "pool1" type: "Pooling" bottom: "norm1" top: "pool1"
        pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
        convolution_param { num_output: 8 group: 2 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
        pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: "side" type: "Concat" bottom: "pool2" bottom: "pool2" top: "side" }
layer { name: "ip1" type: "InnerProduct" bottom: "side" top: "ip1"
        inner_product_param { num_output: 16 weight_filler { type: "xavier" } } }
layer { name: "relu2" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "drop" type: "Dropout" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";

// A few losses, of 4 bytes each, may be allocated; buffers of values would take kilobytes.
TEST(Allocation, ATrainingDoesNotAllocateAfterItsSecondIteration) {
  SolverParameter param =
      ParseSolver(std::string("base_lr: 0.01 momentum: 0.9 weight_decay: 0.001 lr_policy: 'fixed' "
                              "clip_gradients: 5 iter_size: 2 display: 0 max_iter: 9 net_param {") +
                      kPlannedNet + "}",
                  "solver");
  Solver solver(param, {});
  const int64_t before = TensorBytesTaken();
  solver.Step(2);
  ASSERT_GT(TensorBytesTaken(), before) << "allocations are not counted";
  const int64_t warm = TensorBytesTaken();
  solver.Step(4);
  EXPECT_LT(TensorBytesTaken() - warm, 4 * 256);
}

}  // namespace
}  // namespace hearth::caffe
