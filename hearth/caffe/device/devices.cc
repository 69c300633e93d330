// Torch's devices: their count, their streams, and process-wide settings.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <filesystem>

#include "hearth/caffe/device/device_call.h"

namespace hearth::device {
namespace {

// The folder of the loaded torch, found by the library that contains one of ATen's functions.
std::filesystem::path Folder() {
  Dl_info torch{};
  if (dladdr(reinterpret_cast<const void*>(&at::globalContext), &torch) == 0) return {};
  return std::filesystem::path(torch.dli_fname).parent_path();
}

// Loads PyTorch's CUDA library, which is in the same folder as the CPU library and registers
// itself. ATen checks for CUDA only once, for example in the first convolution, so this library
// must be loaded earlier.
int64_t CountCuda() {
  const std::filesystem::path file = Folder() / "libtorch_cuda.so";
  if (!std::filesystem::exists(file)) return 0;
  TORCH_CHECK(dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr,
              "PyTorch's CUDA library cannot be loaded: ", dlerror());
  TORCH_CHECK(at::detail::getCUDAHooks().hasCUDART(), "PyTorch's CUDA library was loaded too late");
  return static_cast<int64_t>(at::getNumGPUs());
}

// The interface that ATen's CUDA library registers. Because calls go through it, this library needs
// no CUDA headers and runs without CUDA.
c10::impl::VirtualGuardImpl Cuda() { return c10::impl::VirtualGuardImpl(at::kCUDA); }

at::Device CudaDevice(int64_t index) { return {at::kCUDA, static_cast<at::DeviceIndex>(index)}; }

// Provides the stream's CUDA handle. Before torch 2.8, only PyTorch's class CUDAStream provides the
// handle; its single member is the Stream.
template <typename Stream>
void* NativeHandle(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    using Function = void* (*)(const Stream*);
    // Found by its mangled name, because PyTorch's header includes CUDA's headers.
    constexpr const char* kName = "_ZNK3c104cuda10CUDAStream6streamEv";
    static const auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, kName));
    TORCH_CHECK(function != nullptr, "PyTorch's CUDA library has no ", kName);
    return function(&stream);
  }
}

}  // namespace

void AddDevices(Table& table) {
  table[HEARTH_OP_count_cuda] = [](Call& c) { c.GiveInteger(CountCuda()); };
  table[HEARTH_OP_use_cuda] = [](Call& c) {
    at::globalContext().lazyInitDevice(at::kCUDA);
    // By default, runs are reproducible, and float32 is not computed as TF32. These settings are
    // process-wide.
    at::globalContext().setDeterministicCuDNN(true);
    at::globalContext().setBenchmarkCuDNN(false);
    at::globalContext().setAllowTF32CuDNN(false);
  };
  table[HEARTH_OP_use_fastest_algorithms] = [](Call&) {
    at::globalContext().setDeterministicCuDNN(false);
    // Lets cuDNN measure its algorithms for each new shape and keep the fastest.
    at::globalContext().setBenchmarkCuDNN(true);
  };
  table[HEARTH_OP_synchronize] = [](Call& c) {
    Cuda().synchronizeDevice(static_cast<at::DeviceIndex>(c.integer(0)));
  };
  table[HEARTH_OP_current_stream] = [](Call& c) {
    c.GivePointer(NativeHandle(Cuda().getStream(CudaDevice(c.integer(0)))));
  };
  // Makes the device's context current; returns the index of the previous one.
  table[HEARTH_OP_enter_device] = [](Call& c) {
    c.GiveInteger(Cuda().exchangeDevice(CudaDevice(c.integer(0))).index());
  };
  table[HEARTH_OP_library_folder] = [](Call& c) {
    // The name is static, because the caller reads it after the call.
    static const std::string folder = Folder();
    c.GivePointer(const_cast<char*>(folder.c_str()));
  };
  table[HEARTH_OP_set_threads] = [](Call& c) {
    at::set_num_threads(static_cast<int>(c.integer(0)));
  };
}

}  // namespace hearth::device
