#include "hearth/caffe/net/compute_device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/shared_library.h"

namespace hearth::caffe {
namespace {

// PyTorch's CUDA part registers itself where it is loaded. It lies beside the CPU part, and is too
// large to load where there is no driver.
bool LoadCuda() {
  if (!SharedLibrary({"libcuda.so.1"}).loaded()) return false;
  Dl_info torch{};
  if (dladdr(reinterpret_cast<const void*>(&at::globalContext), &torch) == 0) return false;
  const auto file = std::filesystem::path(torch.dli_fname).parent_path() / "libtorch_cuda.so";
  if (!std::filesystem::exists(file)) return false;
  if (const SharedLibrary library({file}, RTLD_GLOBAL); !library.loaded()) {
    log::Warning("PyTorch's CUDA library cannot be loaded; nets compute on the CPU: {}",
                 library.problem());
    return false;
  }
  // ATen asks once whether it has CUDA, in the first convolution for one, and keeps the answer.
  if (!at::detail::getCUDAHooks().hasCUDART()) {
    log::Warning("PyTorch's CUDA library was loaded too late; nets compute on the CPU");
    return false;
  }
  return true;
}

size_t SimulatedGpus() {
  const char* count = std::getenv("HEARTH_SIMULATED_GPUS");
  return count != nullptr ? static_cast<size_t>(std::max(0, std::atoi(count))) : 0;
}

}  // namespace

size_t CountCudaDevices() {
  if (const size_t simulated = SimulatedGpus(); simulated > 0) return simulated;
  static const size_t count = LoadCuda() ? at::getNumGPUs() : 0;
  return count;
}

void ComputeDevice::Synchronize() const {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

ComputeDevice CudaDevice(size_t index) {
  Require(index < CountCudaDevices(), ErrorCode::kInvalidArgument,
          "there is no CUDA device {}: this process can use {}; see `hearth device_query`", index,
          CountCudaDevices());
  if (SimulatedGpus() > 0) return ComputeDevice::Simulated();
  at::globalContext().lazyInitDevice(at::kCUDA);
  // A run must be repeatable, and its float32 be float32. PyTorch has these for the whole process.
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
  at::globalContext().setAllowTF32CuDNN(false);
  return {at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index)), true};
}

void UseFastestAlgorithms() {
  at::globalContext().setDeterministicCuDNN(false);
  at::globalContext().setBenchmarkCuDNN(true);
}

}  // namespace hearth::caffe
