#include "hearth/collective/device/cuda_api.h"

#include <utility>

#include "hearth/base/error.h"

namespace hearth::collective::cuda {

// Symbols with _v2 are the current functions, to which cuda.h maps the names without it. The
// symbols without _v2 remain for programs that were built with older versions.
const Loaded<Api>& Library() {
  static const Loaded<Api> loaded = [] {
    LibraryLoader<Api> load("libcuda.so.1", "CUDA's driver", "install NVIDIA's driver for the GPU");
    load("cuInit", &Api::init);
    load("cuDeviceGet", &Api::device_get);
    load("cuDeviceGetPCIBusId", &Api::bus_id);
    load("cuDevicePrimaryCtxRetain", &Api::retain);
    load("cuDevicePrimaryCtxRelease_v2", &Api::release);
    load("cuCtxGetCurrent", &Api::get_current);
    load("cuCtxSetCurrent", &Api::set_current);
    load("cuStreamCreate", &Api::stream_create);
    load("cuStreamDestroy_v2", &Api::stream_destroy);
    load("cuStreamQuery", &Api::stream_query);
    load("cuStreamWaitEvent", &Api::stream_wait);
    load("cuEventCreate", &Api::event_create);
    load("cuEventDestroy_v2", &Api::event_destroy);
    load("cuEventRecord", &Api::event_record);
    load("cuLaunchHostFunc", &Api::launch_host);
    load("cuGetErrorString", &Api::error_string);
    return std::move(load).Take();
  }();
  return loaded;
}

void Check(const Api& api, Result result, const char* what) {
  if (result == kSuccess) return;
  const char* text = nullptr;
  api.error_string(result, &text);
  Throw(ErrorCode::kUnavailable, "CUDA cannot {}: {}", what,
        text == nullptr ? fmt::format("error {}", result) : text);
}

}  // namespace hearth::collective::cuda
