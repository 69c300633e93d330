// The functions of UCX that the collective uses, loaded at run time, so that Hearth builds and runs
// without UCX (docs/decisions/041). The struct layouts are those of UCX 1.x. UCX only appends
// fields, and reads only the fields that are set in the mask. ucx_api_test.cc compares the layouts
// with UCX's headers if these are installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hearth/collective/operation/loaded_library.h"

namespace hearth::collective::ucx {

struct Config;
struct Context;
struct Worker;
struct Endpoint;
struct Address;

using Status = int8_t;  // negative: an error
inline constexpr Status kOk = 0;
inline constexpr Status kInProgress = 1;
inline constexpr Status kBusy = -15;
inline constexpr int kLastError = -100;

// ucp_params_t.
struct Params {
  static constexpr uint64_t kFeatures = 1 << 0;
  static constexpr uint64_t kEndpoints = 1 << 6;
  static constexpr uint64_t kTag = 1 << 0;     // in `features`
  static constexpr uint64_t kWakeup = 1 << 4;  // in `features`

  uint64_t field_mask = 0;
  uint64_t features = 0;
  std::byte unused[40] = {};
  size_t endpoints = 0;
  std::byte newer[256] = {};
};

// ucp_worker_params_t.
struct WorkerParams {
  static constexpr uint64_t kThreadMode = 1 << 0;
  static constexpr int kSerialized = 1;  // value of `thread_mode`: one thread at a time

  uint64_t field_mask = 0;
  int thread_mode = 0;
  std::byte newer[512] = {};
};

// ucp_ep_params_t.
struct EndpointParams {
  static constexpr uint64_t kAddress = 1 << 0;
  static constexpr uint64_t kErrorMode = 1 << 1;
  static constexpr uint64_t kErrorHandler = 1 << 2;
  static constexpr int kPeerErrors = 1;  // value of `error_mode`

  uint64_t field_mask = 0;
  const Address* address = nullptr;
  int error_mode = 0;
  void (*on_error)(void* arg, Endpoint* endpoint, Status status) = nullptr;
  void* on_error_arg = nullptr;
  std::byte newer[256] = {};
};

// All zero for an operation on contiguous bytes without options.
struct RequestParams {
  static constexpr uint32_t kFlags = 1 << 4;
  static constexpr uint32_t kForce = 1 << 0;  // in `flags`, for closing an endpoint

  uint32_t mask = 0;
  uint32_t flags = 0;
  std::byte newer[256] = {};
};

// UCX's functions; the names are UCX's without "ucp". Immutable once loaded.
struct Api {
  Status (*config_read)(const char* prefix, const char* file, Config** config);
  Status (*config_modify)(Config* config, const char* name, const char* value);
  void (*config_release)(Config* config);
  Status (*init_version)(unsigned major, unsigned minor, const Params* params, const Config* config,
                         Context** context);
  void (*cleanup)(Context* context);
  Status (*worker_create)(Context* context, const WorkerParams* params, Worker** worker);
  void (*worker_destroy)(Worker* worker);
  Status (*worker_get_address)(Worker* worker, Address** address, size_t* size);
  void (*worker_release_address)(Worker* worker, Address* address);
  Status (*worker_get_efd)(Worker* worker, int* fd);
  Status (*worker_arm)(Worker* worker);
  unsigned (*worker_progress)(Worker* worker);
  void* (*worker_flush)(Worker* worker, const RequestParams* params);
  Status (*ep_create)(Worker* worker, const EndpointParams* params, Endpoint** endpoint);
  void* (*ep_close)(Endpoint* endpoint, const RequestParams* params);
  void* (*tag_send)(Endpoint* endpoint, const void* data, size_t bytes, uint64_t tag,
                    const RequestParams* params);
  void* (*tag_send_sync)(Endpoint* endpoint, const void* data, size_t bytes, uint64_t tag,
                         const RequestParams* params);
  void* (*tag_recv)(Worker* worker, void* data, size_t bytes, uint64_t tag, uint64_t mask,
                    const RequestParams* params);
  Status (*request_check_status)(void* request);
  void (*request_cancel)(Worker* worker, void* request);
  void (*request_free)(void* request);
  const char* (*status_string)(Status status);
};

// True if the pointer that an operation returned is an error code instead of a request.
inline bool IsError(const void* returned) {
  return reinterpret_cast<uintptr_t>(returned) >= static_cast<uintptr_t>(intptr_t{kLastError});
}

// Loads libucp.so.0 once per process; any thread. Unless the user has set them, the first call sets
// UCX_ERROR_SIGNALS, UCX_HANDLE_ERRORS and UCX_LOG_FILE; otherwise UCX would install a SIGSEGV
// handler and print to standard output.
const Loaded<Api>& Library();

}  // namespace hearth::collective::ucx
