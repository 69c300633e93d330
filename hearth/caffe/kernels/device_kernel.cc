#include "hearth/caffe/kernels/device_kernel.h"

#include <dlfcn.h>

#include <exception>
#include <filesystem>
#include <system_error>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/shared_library.h"
#include "hearth/caffe/tensor/device_library.h"
#include "hearth/caffe/tensor/tensor_error.h"

namespace hearth::caffe {
namespace {

// Values of the driver API's CUdevice_attribute.
constexpr int kMajor = 75, kMinor = 76;

// The functions of NVRTC and of the CUDA driver that are used. Both libraries return 0 for success.
// The functions are declared here, so that the build needs neither library's headers.
struct Compiler {
  int (*create)(void** program, const char* source, const char* name, int, const char**,
                const char**);
  int (*compile)(void* program, int options, const char** texts);
  int (*log_size)(void* program, size_t* size);
  int (*log)(void* program, char* text);
  int (*image_size)(void* program, size_t* size);
  int (*image)(void* program, char* bytes);
  int (*destroy)(void** program);
  int (*current_device)(int* device);
  int (*attribute)(int* value, int attribute, int device);
  int (*load)(void** module, const void* image);
  int (*function)(void** function, void* module, const char* name);
  int (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                unsigned shared_bytes, void* stream, void** arguments, void** extra);
  std::string problem;  // why the functions are unavailable, or empty
};

// Returns the path of PyTorch's stub library, which loads NVRTC and the CUDA driver.
std::string StubFile() {
  const void* folder = CallDevice(HEARTH_OP_library_folder, {}).values[0].pointer;
  return std::filesystem::path(static_cast<const char*>(folder)) / "libcaffe2_nvrtc.so";
}

// NVRTC opens libnvrtc-builtins by its file name alone, and the loader may not search the wheel's
// folder. The loader does find a library that is already loaded, so this function loads
// libnvrtc-builtins in advance.
void LoadBuiltins(const void* function_of_nvrtc) {
  Dl_info nvrtc{};
  if (function_of_nvrtc == nullptr || dladdr(function_of_nvrtc, &nvrtc) == 0) return;
  std::error_code ignored;
  const auto folder = std::filesystem::path(nvrtc.dli_fname).parent_path();
  for (const auto& file : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = file.path().filename();
    if (name.rfind("libnvrtc-builtins.so", 0) == 0) SharedLibrary({file.path()});
  }
}

Compiler LoadCompiler() {
  Compiler found{};
  const SharedLibrary library({StubFile()});
  found.problem = library.problem();
  const auto find = [&](const char* name, auto** function) {
    if (!library.Find(name, function) && found.problem.empty()) {
      found.problem = fmt::format("it has no {}", name);
    }
  };
  find("nvrtcCreateProgram", &found.create);
  LoadBuiltins(reinterpret_cast<const void*>(found.create));
  find("nvrtcCompileProgram", &found.compile);
  find("nvrtcGetProgramLogSize", &found.log_size);
  find("nvrtcGetProgramLog", &found.log);
  find("nvrtcGetCUBINSize", &found.image_size);
  find("nvrtcGetCUBIN", &found.image);
  find("nvrtcDestroyProgram", &found.destroy);
  find("cuCtxGetDevice", &found.current_device);
  find("cuDeviceGetAttribute", &found.attribute);
  find("cuModuleLoadData", &found.load);
  find("cuModuleGetFunction", &found.function);
  find("cuLaunchKernel", &found.launch);
  return found;
}

const Compiler& TheCompiler() {
  static const Compiler compiler = LoadCompiler();
  return compiler;
}

std::string LogOf(const Compiler& compiler, void* program) {
  size_t size = 0;
  if (compiler.log_size(program, &size) != 0) return "";
  std::string text(size, '\0');
  compiler.log(program, text.data());
  if (!text.empty()) text.pop_back();  // the size includes the final NUL
  return text;
}

// Compiles machine code for the current device. For a real architecture (sm_90, not compute_90),
// NVRTC returns machine code instead of PTX, which the driver would have to compile again. Throws
// kUnavailable if NVRTC is too old for the device.
std::string Compile(const Compiler& compiler, const std::string& name, const std::string& source) {
  int device = 0, major = 0, minor = 0;
  const bool knows = compiler.current_device(&device) == 0 &&
                     compiler.attribute(&major, kMajor, device) == 0 &&
                     compiler.attribute(&minor, kMinor, device) == 0;
  Require(knows, ErrorCode::kUnavailable, "no CUDA device is current");
  void* program = nullptr;
  Require(compiler.create(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr) == 0,
          ErrorCode::kUnavailable, "NVRTC rejects the program");
  const std::string target = fmt::format("--gpu-architecture=sm_{}{}", major, minor);
  const char* options[] = {target.c_str(), "--std=c++17"};
  std::string image, problem;
  size_t size = 0;
  if (compiler.compile(program, 2, options) != 0 || compiler.image_size(program, &size) != 0) {
    problem = LogOf(compiler, program);
  } else {
    image.resize(size);
    compiler.image(program, image.data());
  }
  // Frees the program before the check below, which may throw.
  compiler.destroy(&program);
  Require(problem.empty() && !image.empty(), ErrorCode::kUnavailable, "NVRTC for sm_{}{}: {}",
          major, minor, problem);
  return image;
}

// Loads the kernel into the current context, so the caller must make the device current. The module
// is never unloaded, because its kernels are used until the process ends.
void* LoadKernel(const std::string& name, const std::string& source) {
  const Compiler& compiler = TheCompiler();
  Require(compiler.problem.empty(), ErrorCode::kUnavailable, "{}", compiler.problem);
  const std::string image = Compile(compiler, name, source);
  void *module = nullptr, *function = nullptr;
  const int loaded = compiler.load(&module, image.data());
  Require(loaded == 0, ErrorCode::kUnavailable, "cannot load kernel {}: CUDA error {}", name,
          loaded);
  const int found = compiler.function(&function, module, name.c_str());
  Require(found == 0, ErrorCode::kUnavailable, "cannot find kernel {}: CUDA error {}", name, found);
  return function;
}

// Makes the device's context current in the calling thread for the lifetime of this object.
class CurrentDevice {
 public:
  explicit CurrentDevice(int index) : before_(Enter(index)) {}
  ~CurrentDevice() {
    try {
      Enter(before_);
    } catch (const TensorError&) {  // the next use of the previous device reports the error
    }
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  static int64_t Enter(int64_t index) {
    return CallDevice(HEARTH_OP_enter_device, {DeviceInteger(index)}).values[0].integer;
  }

  const int64_t before_;
};

}  // namespace

void* DeviceKernel::Find(const Device& device) {
  // The mutex is locked while the kernel is compiled (some hundred milliseconds), so that other
  // threads that need the kernel wait. A failure leaves a null entry, so that it is logged once and
  // not retried.
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [entry, is_new] = functions_.try_emplace(device.index, nullptr);
  if (!is_new) return entry->second;
  try {
    entry->second = LoadKernel(name_, source_);
  } catch (const std::exception& error) {  // an Error, or a TensorError of the device library
    log::Warning("the kernel {} is unavailable, so steps are slower: {}", name_, error.what());
  }
  return entry->second;
}

bool DeviceKernel::Launch(const Device& device, const Grid& grid, std::vector<void*> arguments) {
  if (!device.is_cuda()) return false;
  // Loading and launching a kernel use the calling thread's current context.
  const CurrentDevice guard(device.index);
  void* function = Find(device);
  if (function == nullptr) return false;
  // The kernel is launched on ATen's stream, so that it runs after the operations submitted before
  // it. The driver copies the arguments during the call. Failures inside the kernel are reported by
  // a later operation that waits for the kernel.
  void* stream =
      CallDevice(HEARTH_OP_current_stream, {DeviceInteger(device.index)}).values[0].pointer;
  const int result = TheCompiler().launch(
      function, static_cast<unsigned>(grid.blocks), 1, 1, static_cast<unsigned>(grid.threads), 1, 1,
      static_cast<unsigned>(grid.shared_floats * static_cast<int64_t>(sizeof(float))), stream,
      arguments.data(), nullptr);
  Require(result == 0, ErrorCode::kInternal,
          "CUDA error {} when launching the kernel {} with {} blocks of {} threads", result, name_,
          grid.blocks, grid.threads);
  return true;
}

}  // namespace hearth::caffe
