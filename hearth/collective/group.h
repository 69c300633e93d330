// The ranks of one training run and their collective operations. Every rank calls the same
// operations with the same arguments in the same order; results are bit-identical on all ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/collective/operation/data_type.h"
#include "hearth/collective/operation/request.h"

namespace hearth::rendezvous {
class Member;  // hearth/rendezvous/member.h
}

namespace hearth::collective {

// Transport between ranks that share no memory.
enum class Medium {
  kAuto,  // RDMA if every rank has an active device, else TCP
  kTcp,
  kRdma,  // an error if a rank has no active device
};

// Options for connecting a rank to the other ranks of its group.
struct GroupOptions {
  std::string listen_host = "127.0.0.1";  // the address that the peers connect to
  int listen_port = 0;                    // 0: chosen by the system; else the first port to try
  int listen_ports = 1;                   // number of ports to try
  double timeout_s = 30;                  // for connecting, and for Allocate
  double stall_s = 30;        // seconds that an operation waits before it is reported in the log
  int local_ranks = 1;        // ranks in this process, one per device thread
  bool shared_memory = true;  // false: TCP also within a host
  bool only_shared_memory = false;  // true: fail if ranks do not share memory
  Medium wire = Medium::kAuto;      // the same on all ranks
  bool encrypt = false;             // TLS between ranks that share no memory; the same on all
  // Replaces UCX_TLS or its default "ib", in the same format, and skips the search for a device.
  // Used by tests on hosts without an RDMA device.
  std::string ucx_transports = {};
  // Ranks with different ids never share memory. Used by tests to simulate several hosts.
  std::string host_id = {};
};

// One rank of a group. Used by one thread at a time, except that any thread may call Abort. After
// an operation has failed, all later ones throw the same error, because the ranks are no longer in
// step.
class Group {
 public:
  // Returns one Group per local rank, in rank order: the local ranks of member 0 come first. Ranks
  // that can map each other's memory share it; others use authenticated TCP, or RDMA. A failure
  // that `member` receives aborts the groups; `member` outlives them. The environment variables
  // HEARTH_TRANSPORT and HEARTH_TLS, the same on all ranks, HEARTH_MESH_PORT (transport_choice.h),
  // HEARTH_INTERFACE (listen_address.h) and HEARTH_STALL_SECONDS override the options. Collective;
  // waits at most options.timeout_s. Throws as Connector::Connect does.
  static std::vector<std::unique_ptr<Group>> Connect(rendezvous::Member& member,
                                                     const GroupOptions& options);
  // Like Connect, but all ranks are threads of this process and need no rendezvous.
  static std::vector<std::unique_ptr<Group>> ConnectThreads(int ranks);

  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  // Leaves the group; peers that still wait for this rank fail with kUnavailable.
  ~Group();

  int rank() const;
  int world() const;
  // Index of this rank among the ranks that share its host's memory.
  int host_index() const;

  // Returns zeroed, page-aligned memory, owned by the group, on which operations work without
  // copies. Collective, with the same size on all ranks. Waits at most options.timeout_s and throws
  // as Run does. Operations accept other memory too, but copy it.
  void* Allocate(size_t bytes);

  // Runs one operation. A count of 0 is allowed; the ranks' calls are still compared. Either all
  // ranks pass the same location of the same allocation as output, or none passes allocated memory.
  // Throws kUnavailable (a peer left) or kDeadlineExceeded, both naming rank and host; kAborted
  // with the reason; or kInvalidArgument, with both calls, if ranks disagree about the operation.
  // An invalid request is kInvalidArgument too, but leaves the group usable.
  void Run(const Request& request, Deadline deadline);
  // Throws as Run does if `request` is invalid. Any thread may call it at any time.
  void Check(const Request& request) const;

  // Shorthands for Run, in place on `count` elements at `buffer`; they wait and throw as it does.
  void AllReduce(void* buffer, size_t count, DataType type, Op op, Deadline deadline);
  // Sends each rank's Part(count, world(), rank()) to all ranks.
  void AllGather(void* buffer, size_t count, DataType type, Deadline deadline);
  void Broadcast(void* buffer, size_t bytes, int root, Deadline deadline);
  void Barrier(Deadline deadline);

  // Enables requests on the memory of this rank's CUDA device number `device` (negative: none)
  // through NCCL. Collective; called before another thread uses the group. Returns true if all
  // ranks support it. Otherwise the group is unchanged, and if any rank has a device, rank 0 logs
  // the reason. Throws as Run does. Groups made by Split open their devices separately.
  bool OpenDevice(int device, Deadline deadline);

  // Splits the group; collective. Ranks with the same `color` form a new group, in the order of
  // their ranks here. A rank with a negative color takes part but gets no group. Another thread may
  // use the new group. Aborting this group aborts the new one, but failures of the new group do not
  // affect this one. The new group must not outlive this one. Throws as Connector::Connect does.
  std::unique_ptr<Group> Split(int color, Deadline deadline);

  // Ends the running operation and all later ones with kAborted and `reason`. Only the first reason
  // is kept.
  void Abort(const std::string& reason);

  // Returns true if an operation has failed. Called only by the thread that uses the group.
  bool broken() const;

  // Transport of the group: "shared memory", "tcp", "rdma" or "shared memory within 2 hosts, tcp
  // between them".
  const std::string& description() const;

  class Impl;
  explicit Group(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::collective
