#include "hearth/collective/transport/ucx_worker.h"

#include "hearth/base/deadline.h"
#include "hearth/base/error.h"

namespace hearth::collective {
namespace {

// Limits the wait for closing endpoints if a driver hangs; a forced close normally takes
// microseconds.
constexpr double kCloseSeconds = 2;
constexpr uint64_t kWholeTag = ~uint64_t{0};
constexpr ucx::RequestParams kPlain;

// UCX 1.10 is the first version that has all functions used here.
constexpr unsigned kMajor = 1;
constexpr unsigned kMinor = 10;

void Check(const ucx::Api& api, ucx::Status status, const char* what,
           const std::string& transports) {
  Require(status == ucx::kOk, ErrorCode::kUnavailable, "UCX cannot {} (UCX_TLS={}): {}", what,
          transports, api.status_string(status));
}

}  // namespace

UcxWorker::UcxWorker(int self, int size, const std::string& transports)
    : api_(ucx::Library().Get()),
      self_(static_cast<uint64_t>(self)),
      ends_(static_cast<size_t>(size)) {
  try {
    Create(transports);
  } catch (...) {
    Stop();
    throw;
  }
}

void UcxWorker::Create(const std::string& transports) {
  ucx::Config* config = nullptr;
  collective::Check(api_, api_.config_read(nullptr, nullptr, &config), "read its settings",
                    transports);
  ucx::Status status = api_.config_modify(config, "TLS", transports.c_str());
  if (status == ucx::kOk) {
    ucx::Params params;
    params.field_mask = ucx::Params::kFeatures | ucx::Params::kEndpoints;
    // kTag: UCX delivers the tagged messages of one sender in order. kWakeup: the worker has a
    // descriptor to sleep on.
    params.features = ucx::Params::kTag | ucx::Params::kWakeup;
    params.endpoints = ends_.size();
    status = api_.init_version(kMajor, kMinor, &params, config, &context_);
  }
  api_.config_release(config);
  collective::Check(api_, status, "open its devices", transports);
  ucx::WorkerParams params;
  params.field_mask = ucx::WorkerParams::kThreadMode;
  // The worker is used by one thread at a time, but not always by the same one.
  params.thread_mode = ucx::WorkerParams::kSerialized;
  collective::Check(api_, api_.worker_create(context_, &params, &worker_), "create a worker",
                    transports);
  collective::Check(api_, api_.worker_get_efd(worker_, &fd_), "get a descriptor", transports);
}

std::string UcxWorker::Address() const {
  ucx::Address* address = nullptr;
  size_t size = 0;
  const ucx::Status status = api_.worker_get_address(worker_, &address, &size);
  Require(status == ucx::kOk, ErrorCode::kUnavailable, "UCX has no address: {}", Text(status));
  std::string bytes(reinterpret_cast<const char*>(address), size);
  api_.worker_release_address(worker_, address);
  return bytes;
}

void UcxWorker::Connect(int peer, const std::string& address) {
  End& end = ends_[static_cast<size_t>(peer)];
  ucx::EndpointParams params;
  params.field_mask = ucx::EndpointParams::kAddress | ucx::EndpointParams::kErrorMode |
                      ucx::EndpointParams::kErrorHandler;
  params.address = reinterpret_cast<const ucx::Address*>(address.data());
  params.error_mode = ucx::EndpointParams::kPeerErrors;
  params.on_error = [](void* arg, ucx::Endpoint*, ucx::Status status) {
    static_cast<End*>(arg)->failure = status;
  };
  params.on_error_arg = &end;
  const ucx::Status status = api_.ep_create(worker_, &params, &end.endpoint);
  Require(status == ucx::kOk, ErrorCode::kUnavailable,
          "UCX finds no route between the devices of the two hosts: {}", Text(status));
}

// The tag is the sender's index, and receives match all of its bits, so a message of one peer never
// fills the buffer of another one.
void* UcxWorker::Send(int peer, const void* data, size_t bytes) {
  return api_.tag_send(ends_[static_cast<size_t>(peer)].endpoint, data, bytes, self_, &kPlain);
}

void* UcxWorker::SendSync(int peer, const void* data, size_t bytes) {
  ucx::Endpoint* endpoint = ends_[static_cast<size_t>(peer)].endpoint;
  return api_.tag_send_sync(endpoint, data, bytes, self_, &kPlain);
}

void* UcxWorker::Receive(int peer, void* data, size_t bytes) {
  return api_.tag_recv(worker_, data, bytes, static_cast<uint64_t>(peer), kWholeTag, &kPlain);
}

void* UcxWorker::Flush() { return api_.worker_flush(worker_, &kPlain); }

ucx::Status UcxWorker::Check(void*& request) const {
  if (request == nullptr) return ucx::kOk;
  if (ucx::IsError(request)) {
    const auto status = static_cast<ucx::Status>(reinterpret_cast<intptr_t>(request));
    request = nullptr;
    return status;
  }
  const ucx::Status status = api_.request_check_status(request);
  if (status != ucx::kInProgress) {
    api_.request_free(request);
    request = nullptr;
  }
  return status;
}

// Closes by force, because a regular close waits for the peer, which may have left. The close
// requests complete only while the worker makes progress, so they are kept for Stop.
void UcxWorker::CloseEndpoints() {
  ucx::RequestParams params;
  params.mask = ucx::RequestParams::kFlags;
  params.flags = ucx::RequestParams::kForce;
  for (End& end : ends_) {
    if (end.endpoint == nullptr) continue;
    closing_.push_back(api_.ep_close(end.endpoint, &params));
    end.endpoint = nullptr;
  }
}

void UcxWorker::Stop() {
  if (worker_ != nullptr) {
    CloseEndpoints();
    const Deadline deadline = Deadline::After(kCloseSeconds);
    for (void*& request : closing_) {
      while (Check(request) == ucx::kInProgress && !deadline.expired()) Progress();
    }
    closing_.clear();
    api_.worker_destroy(worker_);
    worker_ = nullptr;
  }
  if (context_ != nullptr) api_.cleanup(context_);
  context_ = nullptr;
}

}  // namespace hearth::collective
