#include "hearth/collective/transport/ucx_api.h"

#include <cstdlib>
#include <utility>

namespace hearth::collective::ucx {

const Loaded<Api>& Library() {
  static const Loaded<Api> loaded = [] {
    // By default, UCX installs handlers for SIGSEGV and other signals and writes to standard
    // output, both of which belong to the program. Settings of the user are kept.
    constexpr int kKeep = 0;
    // UCX reads these settings when the library is loaded, so only the environment can set them.
    ::setenv("UCX_ERROR_SIGNALS", "", kKeep);
    ::setenv("UCX_HANDLE_ERRORS", "none", kKeep);
    ::setenv("UCX_LOG_FILE", "stderr", kKeep);
    ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", kKeep);
    LibraryLoader<Api> load("libucp.so.0", "UCX",
                            "install 1.10 or newer (Debian: apt install libucx0, Fedora: ucx)");
    load("ucp_config_read", &Api::config_read);
    load("ucp_config_modify", &Api::config_modify);
    load("ucp_config_release", &Api::config_release);
    load("ucp_init_version", &Api::init_version);
    load("ucp_cleanup", &Api::cleanup);
    load("ucp_worker_create", &Api::worker_create);
    load("ucp_worker_destroy", &Api::worker_destroy);
    load("ucp_worker_get_address", &Api::worker_get_address);
    load("ucp_worker_release_address", &Api::worker_release_address);
    load("ucp_worker_get_efd", &Api::worker_get_efd);
    load("ucp_worker_arm", &Api::worker_arm);
    load("ucp_worker_progress", &Api::worker_progress);
    load("ucp_worker_flush_nbx", &Api::worker_flush);
    load("ucp_ep_create", &Api::ep_create);
    load("ucp_ep_close_nbx", &Api::ep_close);
    load("ucp_tag_send_nbx", &Api::tag_send);
    load("ucp_tag_send_sync_nbx", &Api::tag_send_sync);
    load("ucp_tag_recv_nbx", &Api::tag_recv);
    load("ucp_request_check_status", &Api::request_check_status);
    load("ucp_request_cancel", &Api::request_cancel);
    load("ucp_request_free", &Api::request_free);
    load("ucs_status_string", &Api::status_string);
    return std::move(load).Take();
  }();
  return loaded;
}

}  // namespace hearth::collective::ucx
