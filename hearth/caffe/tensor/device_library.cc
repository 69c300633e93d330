#include "hearth/caffe/tensor/device_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/base/shared_library.h"
#include "hearth/caffe/tensor/parallel.h"
#include "hearth/caffe/tensor/tensor_error.h"

namespace hearth::caffe {
namespace {

constexpr const char* kName = "libhearth_device_torch.so";

struct Library {
  const HearthDeviceApi* api = nullptr;
  std::string problem;
};

// Loads the libraries of the Python environment's torch, on which the device library depends. The
// device library names its dependencies without a folder, and the dynamic loader uses already
// loaded libraries of these names.
void LoadTorch() {
  const char* folder = std::getenv("HEARTH_TORCH_LIBRARIES");
  if (folder == nullptr || *folder == '\0') return;
  // libtorch_cpu needs libc10. RTLD_GLOBAL makes the symbols of both available to the device
  // library.
  for (const char* name : {"libc10.so", "libtorch_cpu.so"}) {
    SharedLibrary({std::filesystem::path(folder) / name}, RTLD_GLOBAL);
  }
}

// Loads the file that HEARTH_DEVICE_LIBRARY names. If it is not set, loads the file in the folder
// of the library or program that contains this code, or else one that the dynamic loader finds.
Library LoadLibrary() {
  const char* given = std::getenv("HEARTH_DEVICE_LIBRARY");
  std::string file = given != nullptr ? given : "";
  Dl_info self{};
  if (file.empty() && dladdr(reinterpret_cast<const void*>(&DeviceLibraryProblem), &self) != 0) {
    const auto beside = std::filesystem::path(self.dli_fname).parent_path() / kName;
    file = std::filesystem::exists(beside) ? beside.string() : kName;
  }
  // Must precede the device library, or the loader would search for torch's libraries itself.
  LoadTorch();
  const SharedLibrary library({file});
  Library loaded;
  const HearthDeviceApi* (*get)() = nullptr;
  constexpr const char* kRemedy =
      "install PyTorch (pip install torch) and, for a version that the wheel has no library for, "
      "run `hearth build-device`";
  if (!library.Find("hearth_device_api", &get)) {
    loaded.problem = fmt::format("the library for GPUs, {}, cannot be loaded ({}); {}", kName,
                                 library.problem(), kRemedy);
  } else if (get()->version != kHearthDeviceApiVersion) {
    // No other member of the table may be used, because another version may number its operations
    // differently.
    loaded.problem = fmt::format("{} has interface version {}, but version {} is required; {}",
                                 kName, get()->version, kHearthDeviceApiVersion, kRemedy);
  } else {
    loaded.api = get();
  }
  return loaded;
}

// Null until the library is loaded. For callers that use the library only if it is loaded.
std::atomic<const Library*> loaded_library{nullptr};

void SetThreads(const Library& library, int count) {
  const HearthDeviceValue threads = DeviceInteger(count);
  int32_t results = 0;
  if (library.api != nullptr) {
    library.api->call(HEARTH_OP_set_threads, &threads, 1, nullptr, &results);
  }
}

const Library& TheLibrary() {
  static const Library* const library = [] {
    // Never destroyed, because tensors in static objects are released through the library when the
    // process ends.
    const auto* made = new Library(LoadLibrary());
    // Restores OpenMP's thread count of this thread, which torch sets to its own default on first
    // use.
    SetThreads(*made, ThreadCount());
    loaded_library = made;
    return made;
  }();
  return *library;
}

}  // namespace

const std::string& DeviceLibraryProblem() { return TheLibrary().problem; }

DeviceResults CallDevice(HearthDeviceOperation operation,
                         std::initializer_list<HearthDeviceValue> arguments) {
  const Library& library = TheLibrary();
  Require(library.api != nullptr, ErrorCode::kUnavailable, "{}", library.problem);
  DeviceResults results{};
  // Passes the capacity, so that a library with more results fails instead of writing past the
  // array.
  results.count = static_cast<int32_t>(std::size(results.values));
  const int32_t failed =
      library.api->call(operation, arguments.begin(), static_cast<int32_t>(arguments.size()),
                        results.values, &results.count);
  if (failed == 0) return results;
  throw TensorError(failed == 1, library.api->problem());
}

void SetDeviceLibraryThreads(int count) {
  if (const Library* library = loaded_library) SetThreads(*library, count);
}

void ReleaseDeviceTensor(void* handle) noexcept { TheLibrary().api->release(handle); }

}  // namespace hearth::caffe
