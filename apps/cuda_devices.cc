#include "apps/cuda_devices.h"

#include <fmt/format.h>

#include "hearth/base/shared_library.h"

namespace hearth::program {
namespace {

// Values of the driver API's CUdevice_attribute.
enum Attribute {
  kMaxThreadsPerBlock = 1,
  kMaxBlockX = 2,
  kMaxGridX = 5,
  kSharedMemoryPerBlock = 8,
  kConstantMemory = 9,
  kWarpSize = 10,
  kMaxPitch = 11,
  kRegistersPerBlock = 12,
  kClockRate = 13,
  kTextureAlignment = 14,
  kConcurrentCopy = 15,
  kMultiprocessors = 16,
  kKernelTimeout = 17,
  kMajor = 75,
  kMinor = 76
};

// The functions of the driver that are used here. Load() returns false if the library or one of the
// functions is missing. The library stays loaded.
struct Driver {
  int (*init)(unsigned);
  int (*count)(int*);
  int (*get)(int*, int);
  int (*name)(char*, int, int);
  int (*memory)(size_t*, int);
  int (*attribute)(int*, int, int);

  bool Load() {
    const SharedLibrary library({"libcuda.so.1"});
    return library.Find("cuInit", &init) && library.Find("cuDeviceGetCount", &count) &&
           library.Find("cuDeviceGet", &get) && library.Find("cuDeviceGetName", &name) &&
           library.Find("cuDeviceTotalMem_v2", &memory) &&
           library.Find("cuDeviceGetAttribute", &attribute);
  }
};

DeviceFacts Describe(const Driver& driver, int id) {
  int device = 0;
  driver.get(&device, id);
  char name[256] = {};
  driver.name(name, sizeof name - 1, device);
  size_t memory = 0;
  driver.memory(&memory, device);
  const auto attribute = [&](int which) {
    int value = 0;
    driver.attribute(&value, which, device);
    return value;
  };
  const auto number = [&](int which) { return fmt::format("{}", attribute(which)); };
  const auto yes_or_no = [&](int which) { return std::string(attribute(which) ? "Yes" : "No"); };
  const auto triple = [&](int first) {
    return fmt::format("{}, {}, {}", attribute(first), attribute(first + 1), attribute(first + 2));
  };
  return {{"Device id", fmt::format("{}", id)},
          {"Major revision number", number(kMajor)},
          {"Minor revision number", number(kMinor)},
          {"Name", name},
          {"Total global memory", fmt::format("{}", memory)},
          {"Total shared memory per block", number(kSharedMemoryPerBlock)},
          {"Total registers per block", number(kRegistersPerBlock)},
          {"Warp size", number(kWarpSize)},
          {"Maximum memory pitch", number(kMaxPitch)},
          {"Maximum threads per block", number(kMaxThreadsPerBlock)},
          {"Maximum dimension of block", triple(kMaxBlockX)},
          {"Maximum dimension of grid", triple(kMaxGridX)},
          {"Clock rate", number(kClockRate)},
          {"Total constant memory", number(kConstantMemory)},
          {"Texture alignment", number(kTextureAlignment)},
          {"Concurrent copy and execution", yes_or_no(kConcurrentCopy)},
          {"Number of multiprocessors", number(kMultiprocessors)},
          {"Kernel execution timeout", yes_or_no(kKernelTimeout)}};
}

}  // namespace

std::vector<DeviceFacts> CudaDevices() {
  std::vector<DeviceFacts> devices;
  Driver driver{};
  int count = 0;
  if (!driver.Load() || driver.init(0) != 0 || driver.count(&count) != 0) return devices;
  for (int id = 0; id < count; ++id) devices.push_back(Describe(driver, id));
  return devices;
}

}  // namespace hearth::program
