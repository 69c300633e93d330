#include "hearth/collective/ucx_api.h"

#include <dlfcn.h>

#include <cstdlib>

#include "hearth/base/error.h"

namespace hearth::collective::ucx {
namespace {

constexpr const char* kLibrary = "libucp.so.0";

struct Loaded {
  Api api = {};
  std::string problem;
};

template <typename Function>
void Find(void* library, const char* name, Function*& function, std::string& problem) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr && problem.empty()) {
    problem = fmt::format("{} has no {}: UCX 1.10 or newer is needed", kLibrary, name);
  }
}

void FindAll(void* library, Api& api, std::string& problem) {
  const auto find = [&](const char* name, auto*& function) {
    Find(library, name, function, problem);
  };
  find("ucp_config_read", api.config_read);
  find("ucp_config_modify", api.config_modify);
  find("ucp_config_release", api.config_release);
  find("ucp_init_version", api.init_version);
  find("ucp_cleanup", api.cleanup);
  find("ucp_worker_create", api.worker_create);
  find("ucp_worker_destroy", api.worker_destroy);
  find("ucp_worker_get_address", api.worker_get_address);
  find("ucp_worker_release_address", api.worker_release_address);
  find("ucp_worker_get_efd", api.worker_get_efd);
  find("ucp_worker_arm", api.worker_arm);
  find("ucp_worker_progress", api.worker_progress);
  find("ucp_worker_flush_nbx", api.worker_flush);
  find("ucp_ep_create", api.ep_create);
  find("ucp_ep_close_nbx", api.ep_close);
  find("ucp_tag_send_nbx", api.tag_send);
  find("ucp_tag_send_sync_nbx", api.tag_send_sync);
  find("ucp_tag_recv_nbx", api.tag_recv);
  find("ucp_request_check_status", api.request_check_status);
  find("ucp_request_cancel", api.request_cancel);
  find("ucp_request_free", api.request_free);
  find("ucs_status_string", api.status_string);
}

Loaded Load() {
  constexpr int kKeep = 0;
  // Read when the library is loaded, so they cannot be given in another way.
  ::setenv("UCX_ERROR_SIGNALS", "", kKeep);
  ::setenv("UCX_HANDLE_ERRORS", "none", kKeep);
  ::setenv("UCX_LOG_FILE", "stderr", kKeep);
  ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", kKeep);
  Loaded loaded;
  // Stays loaded: threads of its own may still run when the last group ends.
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.problem = fmt::format(
        "UCX cannot be loaded ({}); install it (Debian: apt install libucx0, Fedora: ucx)",
        ::dlerror());
  } else {
    FindAll(library, loaded.api, loaded.problem);
  }
  return loaded;
}

const Loaded& Once() {
  static const Loaded loaded = Load();
  return loaded;
}

}  // namespace

const Api& Library() {
  Require(Once().problem.empty(), ErrorCode::kUnavailable, "{}", Once().problem);
  return Once().api;
}

std::string WhyNoLibrary() { return Once().problem; }

}  // namespace hearth::collective::ucx
