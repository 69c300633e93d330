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

// How a rank connects to the other ranks of its group.
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
  // As UCX_TLS, and instead of UCX_TLS or "ib"; skips the search for a device. Used by tests on
  // hosts without an RDMA device.
  std::string ucx_transports = {};
  // Ranks with different ids never share memory. Used by tests to simulate several hosts.
  std::string host_id = {};
};

// One rank. One thread at a time may use it, except that any thread may call Abort. After an
// operation has failed, all later ones throw the same error: the ranks are no longer in step.
class Group {
 public:
  // Returns one Group per local rank, in rank order: the local ranks of member 0 come first. Ranks
  // that can map each other's memory share it; others use authenticated TCP, or RDMA. A failure
  // that `member` receives aborts the groups; `member` outlives them. The environment variables
  // HEARTH_TRANSPORT and HEARTH_TLS, the same on all ranks, HEARTH_MESH_PORT (transport_choice.h),
  // HEARTH_INTERFACE (listen_address.h) and HEARTH_STALL_SECONDS override the options. Collective;
  // takes at most options.timeout_s. Throws as Connector::Connect does.
  static std::vector<std::unique_ptr<Group>> Connect(rendezvous::Member& member,
                                                     const GroupOptions& options);
  // All ranks are threads of this process; no rendezvous is needed.
  static std::vector<std::unique_ptr<Group>> ConnectThreads(int ranks);

  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  // Peers that still wait for this rank fail with kUnavailable.
  ~Group();

  int rank() const;
  int world() const;
  // Index of this rank among the ranks that share its host's memory.
  int host_index() const;

  // Zeroed, page-aligned memory that operations work on in place, owned by the group. Collective,
  // with the same size on all ranks; waits for at most options.timeout_s and throws as Run does.
  // Any other memory works too, but costs copies.
  void* Allocate(size_t bytes);

  // Carries out one operation; a count of 0 is allowed and still compares the ranks' calls. Either
  // all ranks pass the same location of the same allocation as output, or none passes allocated
  // memory. Failures: kUnavailable (a peer left), kDeadlineExceeded, both naming rank and host;
  // kAborted with the reason; kInvalidArgument when ranks disagree about the operation, with both
  // calls. An invalid request is kInvalidArgument too, but leaves the group usable.
  void Run(const Request& request, Deadline deadline);
  // Throws as Run does for an invalid request. Any thread, at any time.
  void Check(const Request& request) const;

  // Shorthands for Run, in place on `count` elements at `buffer`; they wait and throw as it does.
  void AllReduce(void* buffer, size_t count, DataType type, Op op, Deadline deadline);
  // Sends each rank's Part(count, world(), rank()) to all ranks.
  void AllGather(void* buffer, size_t count, DataType type, Deadline deadline);
  void Broadcast(void* buffer, size_t bytes, int root, Deadline deadline);
  // Returns once all ranks have called it. Throws as Run does.
  void Barrier(Deadline deadline);

  // Lets requests work on the memory of this rank's CUDA device number `device` (negative: none),
  // by NCCL. Collective; called before another thread uses the group. Returns true if all ranks
  // can; otherwise nothing has changed, and if some rank has a device the log of rank 0 gives the
  // reason. Throws as Run does. Groups that split off open their own devices.
  bool OpenDevice(int device, Deadline deadline);

  // Splits the group; collective. Ranks with the same `color` form a new group, in the order of
  // their ranks here. A rank with a negative color takes part and gets no group. Another thread may
  // use the new group; it is aborted with this one, its failures do not affect this one, and it
  // must not outlive this one. Throws as Connector::Connect does.
  std::unique_ptr<Group> Split(int color, Deadline deadline);

  // Ends the running operation and all later ones with kAborted and `reason`. Only the first reason
  // is kept.
  void Abort(const std::string& reason);

  // Whether an operation has failed. The thread that uses it.
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
