// Nets and solvers on a simulated device with separate memory. Values are transferred as for a GPU.
#include <gmock/gmock.h>

#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/solver/solver.h"
#include "hearth/caffe/tensor/testing/device_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Layers that compute on the device, and one that does not: pooling with very wide padding.
constexpr char kMiddle[] = R"(
  layer { name: 'square' type: 'Reshape' bottom: 'h' top: 'q'
          reshape_param { shape { dim: 0 dim: 1 dim: 2 dim: 2 } } }
  layer { name: 'pool' type: 'Pooling' bottom: 'q' top: 'p'
          pooling_param { pool: AVE kernel_size: 3 pad: 2 stride: 3 } }
  layer { name: 'row' type: 'Flatten' bottom: 'p' top: 'm' }
  layer { name: 'sum' type: 'Eltwise' bottom: 'h' bottom: 'm' top: 'z' }
  layer { name: 'd' type: 'Dropout' bottom: 'z' top: 'z' dropout_param { dropout_ratio: 0.3 } })";

// Returns a regression net in which `middle` transforms the hidden values from "h" to "z".
std::string NetAround(const std::string& middle) {
  return fmt::format(R"(
    layer {{ name: "rows" type: "TestRows" top: "x" top: "t"
             memory_data_param {{ batch_size: 4 height: 10 }} }}
    layer {{ name: "ip1" type: "InnerProduct" bottom: "x" top: "h" param {{ lr_mult: 1 }}
             param {{ lr_mult: 2 decay_mult: 0 }}
             inner_product_param {{ num_output: 4 weight_filler {{ type: "xavier" }} }} }}
    layer {{ name: "s" type: "Sigmoid" bottom: "h" top: "h" }}
    {}
    layer {{ name: "ip2" type: "InnerProduct" bottom: "z" top: "y"
             inner_product_param {{ num_output: 1 weight_filler {{ type: "xavier" }} }} }}
    layer {{ name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }})",
                     middle);
}

std::unique_ptr<Solver> MakeOn(const ComputeDevice& device, const std::string& text,
                               const std::string& middle = kMiddle) {
  SolverParameter param =
      ParseSolver("base_lr: 0.05 lr_policy: 'fixed' weight_decay: 0.01 " + text, "solver");
  *param.mutable_net_param() = ParseNet(NetAround(middle), "net");
  SolverOptions options;
  options.seed = 7;
  options.registry = &TestRegistry();
  options.train_context.device = options.test_context.device = device;
  options.train_context.share_diffs = true;
  return std::make_unique<Solver>(param, std::move(options));
}

void ExpectEqualTraining(Solver& a, Solver& b, int iterations) {
  a.Step(iterations);
  b.Step(iterations);
  EXPECT_TRUE(AllClose(a.net().params().data(), b.net().params().data(), 1e-4, 1e-6));
  EXPECT_NEAR(a.last_loss(), b.last_loss(), 1e-4);
  const auto history = a.history(), other = b.history();
  for (size_t i = 0; i < history.size(); ++i) {
    EXPECT_TRUE(AllClose(history[i], other[i], 1e-4, 1e-6)) << "history " << i;
  }
}

class SimulatedSolver : public testing::TestWithParam<const char*> {};

TEST_P(SimulatedSolver, TrainsLikeTheCpu) {
  auto cpu = MakeOn({}, GetParam()), device = MakeOn(DeviceForTests(), GetParam());
  ExpectEqualTraining(*cpu, *device, 7);
}

INSTANTIATE_TEST_SUITE_P(
    Solvers, SimulatedSolver,
    testing::Values("momentum: 0.9", "momentum: 0.9 clip_gradients: 0.5", "iter_size: 3",
                    "momentum: 0.9 regularization_type: 'L1'", "type: 'Nesterov' momentum: 0.9",
                    "type: 'AdaGrad'", "type: 'RMSProp' rms_decay: 0.9",
                    "type: 'AdaDelta' momentum: 0.9", "type: 'Adam' momentum: 0.9",
                    "momentum: 0.9 debug_info: true display: 2 test_iter: 2 test_interval: 2"));

TEST(SimulatedDevice, ResumesFromItsSnapshot) {
  std::string folder = (std::filesystem::temp_directory_path() / "hearth_device_XXXXXX").string();
  mkdtemp(folder.data());
  const std::string text = fmt::format("momentum: 0.9 snapshot_prefix: '{}/a'", folder);
  auto straight = MakeOn(DeviceForTests(), text);
  straight->Step(3);
  const std::string state = straight->Snapshot().second;
  straight->Step(3);
  auto resumed = MakeOn(DeviceForTests(), text);
  resumed->Step(2);
  resumed = MakeOn(DeviceForTests(), text);
  resumed->Restore(state);
  resumed->Step(3);
  EXPECT_TRUE(Equal(straight->net().params().data(), resumed->net().params().data()));
  std::filesystem::remove_all(folder);
}

TEST(SimulatedDevice, UsesWeightsThatTheHostWrites) {
  auto cpu = MakeOn({}, "momentum: 0.9"), device = MakeOn(DeviceForTests(), "momentum: 0.9");
  for (Solver* solver : {cpu.get(), device.get()}) {
    solver->Step(2);
    solver->net().params().data().mul_(0.5);
  }
  ExpectEqualTraining(*cpu, *device, 2);
}

TEST(SimulatedDevice, KeepsLayersWithOneParameterTogether) {
  const std::string shared = R"(
    layer { name: 'a' type: 'InnerProduct' bottom: 'h' top: 'a' param { name: 'p' }
      inner_product_param { num_output: 4 bias_term: false weight_filler { type: 'xavier' } } }
    layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'z' param { name: 'p' }
      inner_product_param { num_output: 4 bias_term: false weight_filler { type: 'xavier' } } })";
  auto cpu = MakeOn({}, "momentum: 0.9", shared);
  auto device = MakeOn(DeviceForTests(), "momentum: 0.9", shared);
  ExpectEqualTraining(*cpu, *device, 5);
}

// With share_diffs, the gradients of BatchNorm and Scale are computed together.
TEST(SimulatedDevice, ScalesNormalizedValuesLikeTheCpu) {
  constexpr char kScale[] = "scale_param { bias_term: true filler { value: 1.5 } }";
  for (const auto& [normalized, scaled] : {std::pair("n", "z"), {"n", "n"}, {"h", "h"}}) {
    const std::string last =
        scaled == std::string("z")
            ? ""
            : fmt::format("layer {{ name: 'last' type: 'TanH' bottom: '{}' top: 'z' }}", scaled);
    const std::string middle = fmt::format(
        "layer {{ name: 'norm' type: 'BatchNorm' bottom: 'h' top: '{0}' }}"
        "layer {{ name: 'scale' type: 'Scale' bottom: '{0}' top: '{1}' {2} }} {3}",
        normalized, scaled, kScale, last);
    auto cpu = MakeOn({}, "momentum: 0.9", middle);
    auto device = MakeOn(DeviceForTests(), "momentum: 0.9", middle);
    ExpectEqualTraining(*cpu, *device, 5);
  }
}

TEST(SimulatedDevice, DoesNotFuseAScaleWithOtherReaders) {
  const std::string middle = R"(
    layer { name: 'norm' type: 'BatchNorm' bottom: 'h' top: 'n' }
    layer { name: 'scale' type: 'Scale' bottom: 'n' top: 's' scale_param { bias_term: true } }
    layer { name: 'sum' type: 'Eltwise' bottom: 'n' bottom: 's' top: 'z' })";
  auto cpu = MakeOn({}, "momentum: 0.9", middle);
  auto device = MakeOn(DeviceForTests(), "momentum: 0.9", middle);
  // With four rows, the variance is so small that rounding errors grow in each further iteration.
  ExpectEqualTraining(*cpu, *device, 1);
}

TEST(CudaDevice, OfANonexistentIndexIsRejected) {
  const size_t count = CountCudaDevices();
  EXPECT_THAT([=] { CudaDevice(count); },
              ThrowsMessage<Error>(HasSubstr(fmt::format("no CUDA device {}", count))));
}

}  // namespace
}  // namespace hearth::caffe
