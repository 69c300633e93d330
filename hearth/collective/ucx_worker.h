// UCX's side of one rank: an endpoint for each peer, and messages that arrive in the order in which
// they were sent. Owned by a transport; one thread at a time. Errors of UCX become hearth::Error.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "hearth/collective/ucx_api.h"

namespace hearth::collective {

class UcxWorker {
 public:
  // `self` is this rank's index among `size`; `transports` as in UCX_TLS. Throws kUnavailable where
  // UCX is not installed or has none of them.
  UcxWorker(int self, int size, const std::string& transports);
  ~UcxWorker() { Stop(); }
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  // What a peer needs to reach this one.
  std::string Address() const;
  // Only prepares; messages find out whether the peer is reached.
  void Connect(int peer, const std::string& address);

  // Begin to move bytes, which must stay where they are until Check says that it is over. Null is
  // over already.
  void* Send(int peer, const void* data, size_t bytes);
  // Over when the peer has received it.
  void* SendAndHear(int peer, const void* data, size_t bytes);
  void* Receive(int peer, void* data, size_t bytes);
  // Over when peers can take all that was sent without this rank's help.
  void* Flush();
  // kInProgress, or how it ended; `request` is null then.
  ucx::Status Check(void*& request) const;
  void Cancel(void* receive) const { api_.request_cancel(worker_, receive); }

  // True when something happened.
  bool Progress() { return api_.worker_progress(worker_) != 0; }
  // True when fd() will be readable once there is something to do; false when there is already.
  bool Arm() const { return api_.worker_arm(worker_) == ucx::kOk; }
  int fd() const { return fd_; }
  // What ended the endpoint of this peer, or kOk.
  ucx::Status Failure(int peer) const { return ends_[static_cast<size_t>(peer)].failure; }
  std::string Text(ucx::Status status) const { return api_.status_string(status); }

  // Ends what is in flight: no memory is touched any more once Stop returned. Idempotent.
  void CloseEndpoints();
  void Stop();
  bool stopped() const { return worker_ == nullptr; }

 private:
  struct End {
    ucx::Endpoint* endpoint = nullptr;
    ucx::Status failure = ucx::kOk;
  };

  void Create(const std::string& transports);

  const ucx::Api& api_;
  const uint64_t self_;
  std::deque<End> ends_;  // by peer; UCX keeps pointers to them
  ucx::Context* context_ = nullptr;
  ucx::Worker* worker_ = nullptr;
  int fd_ = -1;
  std::vector<void*> closing_;
};

}  // namespace hearth::collective
