#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "hearth/collective/transport/ucx_api.h"

namespace hearth::collective {

// UCX worker of one rank, with an endpoint for each peer. Messages arrive in the order in which
// they were sent. Owned by a transport; used by one thread at a time. UCX errors become
// hearth::Error.
class UcxWorker {
 public:
  // `self` is this rank's index among `size` ranks. `transports` has the format of UCX_TLS. Throws
  // kUnavailable if UCX is not installed or supports none of these transports.
  UcxWorker(int self, int size, const std::string& transports);
  ~UcxWorker() { Stop(); }
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  // The address that peers pass to Connect.
  std::string Address() const;
  // Prepares the endpoint; only messages show whether the peer is reachable.
  void Connect(int peer, const std::string& address);

  // Start a transfer and return its request, or null if it is already complete. The memory must
  // stay valid until Check reports the end of the transfer.
  void* Send(int peer, const void* data, size_t bytes);
  // Completes when the peer has received the message.
  void* SendSync(int peer, const void* data, size_t bytes);
  void* Receive(int peer, void* data, size_t bytes);
  // Completes when the peers can receive everything without further progress by this rank.
  void* Flush();
  // Returns kInProgress, or the final status and sets `request` to null.
  ucx::Status Check(void*& request) const;
  void Cancel(void* receive) const { api_.request_cancel(worker_, receive); }

  // Returns true if anything progressed.
  bool Progress() { return api_.worker_progress(worker_) != 0; }
  // Returns true if fd() will signal the next event; false if one is already pending.
  bool Arm() const { return api_.worker_arm(worker_) == ucx::kOk; }
  int fd() const { return fd_; }
  // The error that ended this peer's endpoint, or kOk.
  ucx::Status Failure(int peer) const { return ends_[static_cast<size_t>(peer)].failure; }
  std::string Text(ucx::Status status) const { return api_.status_string(status); }

  // End transfers in flight. No memory is accessed after Stop. Idempotent.
  void CloseEndpoints();
  void Stop();
  bool stopped() const { return worker_ == nullptr; }

 private:
  // Endpoint of a peer, and the error that ended it.
  struct End {
    ucx::Endpoint* endpoint = nullptr;
    ucx::Status failure = ucx::kOk;
  };

  void Create(const std::string& transports);

  const ucx::Api& api_;
  const uint64_t self_;
  std::deque<End> ends_;  // by peer; a deque, because UCX keeps pointers to the elements
  ucx::Context* context_ = nullptr;
  ucx::Worker* worker_ = nullptr;
  int fd_ = -1;
  std::vector<void*> closing_;
};

}  // namespace hearth::collective
