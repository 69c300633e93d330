#include "hearth/caffe/tensor/compute_device.h"

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/shared_library.h"
#include "hearth/caffe/tensor/device_library.h"
#include "hearth/caffe/tensor/tensor_error.h"

namespace hearth::caffe {
namespace {

constexpr size_t kMaxSimulatedGpus = 64;

// Returns the number of CUDA devices. If there is no driver, does not load the large device
// library. On any failure, logs a warning and returns 0, so nets compute on the CPU.
size_t CountWithLibrary() {
  if (!SharedLibrary({"libcuda.so.1"}).loaded()) return 0;
  if (const std::string& problem = DeviceLibraryProblem(); !problem.empty()) {
    log::Warning("nets compute on the CPU: {}", problem);
    return 0;
  }
  try {
    return static_cast<size_t>(CallDevice(HEARTH_OP_count_cuda, {}).values[0].integer);
  } catch (const TensorError& error) {
    log::Warning("nets compute on the CPU: {}", error.what());
    return 0;
  }
}

// Read in each call, because tests change the environment.
size_t SimulatedGpus() {
  const char* given = std::getenv("HEARTH_SIMULATED_GPUS");
  if (given == nullptr || *given == '\0') return 0;
  const std::string_view text(given);
  size_t count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  Require(
      problem == std::errc() && end == text.data() + text.size() && count <= kMaxSimulatedGpus,
      ErrorCode::kInvalidArgument,
      "the environment variable HEARTH_SIMULATED_GPUS={} must be a number of devices from 0 to {}",
      text, kMaxSimulatedGpus);
  return count;
}

}  // namespace

size_t CountCudaDevices() {
  if (const size_t simulated = SimulatedGpus(); simulated > 0) return simulated;
  // Counted once per process, because loading torch's CUDA library takes most of a second.
  static const size_t count = CountWithLibrary();
  return count;
}

void ComputeDevice::Synchronize() const {
  if (device.is_cuda()) CallDevice(HEARTH_OP_synchronize, {DeviceInteger(device.index)});
}

ComputeDevice CudaDevice(size_t index) {
  Require(
      index < CountCudaDevices(), ErrorCode::kInvalidArgument,
      "there is no CUDA device {}: this process can use {} device(s); see `hearth device_query`",
      index, CountCudaDevices());
  if (SimulatedGpus() > 0) {
    Require(DeviceLibraryProblem().empty(), ErrorCode::kUnavailable, "{}", DeviceLibraryProblem());
    return ComputeDevice::Simulated();
  }
  // use_cuda also selects deterministic algorithms.
  CallDevice(HEARTH_OP_use_cuda, {});
  return {{HEARTH_CUDA, static_cast<int>(index)}, true};
}

void UseFastestAlgorithms() {
  // Simulated devices compute on the CPU, where there are no algorithms to choose from.
  if (CountCudaDevices() > SimulatedGpus()) CallDevice(HEARTH_OP_use_fastest_algorithms, {});
}

}  // namespace hearth::caffe
