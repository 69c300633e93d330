// The ranks of one training run and what they do together. Every rank calls the same operations
// with the same arguments in the same order; results are bit-identical on all ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/collective/data_type.h"
#include "hearth/collective/request.h"

namespace hearth::rendezvous {
class Member;  // hearth/rendezvous/member.h
}

namespace hearth::collective {

// What ranks that share no memory talk over.
enum class Medium {
  kAuto,  // RDMA where every rank has a device that is up, else tcp
  kTcp,
  kRdma,  // an error where a rank has no device that is up
};

struct GroupOptions {
  std::string listen_host = "127.0.0.1";  // the interface whose address the peers connect to
  int listen_port = 0;              // 0: the system chooses; else the first of those that are tried
  int listen_ports = 1;             // how many that are
  double timeout_s = 30;            // for connecting, and for Allocate
  double stall_s = 30;              // how long an operation waits before the log says for whom
  int local_ranks = 1;              // ranks in this process, one per device thread
  bool shared_memory = true;        // false: tcp also within a host
  bool only_shared_memory = false;  // true: ranks that do not share memory are an error
  Medium wire = Medium::kAuto;      // the same on all ranks
  bool encrypt = false;             // TLS between ranks that share no memory; the same on all
  // As UCX_TLS takes them, instead of UCX_TLS itself or "ib"; no device is looked for then. Tests
  // use it where there is no RDMA device.
  std::string ucx_transports = {};
  // Ranks with different ids never share memory. Tests use it to act as several hosts.
  std::string host_id = {};
};

// One rank. One thread at a time may use it, except that Abort may come from any thread. After an
// operation threw, all later ones throw the same error: the ranks are no longer in step.
class Group {
 public:
  // One Group per local rank, in rank order: the local ranks of member 0 come first. Ranks that
  // prove to see the same memory share it; others talk over authenticated tcp, or RDMA. A failure
  // that `member` hears of aborts the groups, which it outlives. The environment's
  // HEARTH_TRANSPORT and HEARTH_TLS, the same on all ranks, HEARTH_MESH_PORT (transport_choice.h),
  // HEARTH_INTERFACE (listen_address.h) and HEARTH_STALL_SECONDS come before the options.
  static std::vector<std::unique_ptr<Group>> Connect(rendezvous::Member& member,
                                                     const GroupOptions& options);
  // All ranks are threads of this process; no rendezvous is needed.
  static std::vector<std::unique_ptr<Group>> ConnectThreads(int ranks);

  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  // Peers that still wait for this rank learn that it left.
  ~Group();

  int rank() const;
  int world() const;
  // This rank's place among those that share its host's memory.
  int host_index() const;

  // Zeroed, page-aligned memory that operations work on in place, owned by the group. All ranks
  // call it together with the same size. Any other memory works too, but costs copies.
  void* Allocate(size_t bytes);

  // Carries out one operation; a count of 0 is allowed and still compares the ranks' calls. Either
  // all ranks pass the same place of the same allocation as output or none passes allocated memory.
  // Failures: kUnavailable (a peer left), kDeadlineExceeded, both naming rank and host; kAborted
  // with the reason; kInvalidArgument when ranks disagree about the operation, with what both
  // called. A request that makes no sense by itself is kInvalidArgument too, but not final.
  void Run(const Request& request, Deadline deadline);
  // Throws as Run does for a request that makes no sense by itself. Any thread, at any time.
  void Check(const Request& request) const;

  // Shorthands, in place on `count` elements at `buffer`.
  void AllReduce(void* buffer, size_t count, DataType type, Op op, Deadline deadline);
  // Afterwards Part(count, world(), rank()) is reduced; the rest of the buffer is unspecified.
  void ReduceScatter(void* buffer, size_t count, DataType type, Op op, Deadline deadline);
  // Each rank's Part(count, world(), rank()) reaches all ranks.
  void AllGather(void* buffer, size_t count, DataType type, Deadline deadline);
  void Broadcast(void* buffer, size_t bytes, int root, Deadline deadline);
  void Barrier(Deadline deadline);

  // Lets requests work on the memory of this rank's CUDA device number `device` (negative: it has
  // none), by NCCL. All ranks call it together, before anything else than this thread uses the
  // group. True where all ranks can; else nothing has changed, and where a rank has a device the
  // log of rank 0 says why. Throws as Run does. Groups that split off open their own.
  bool OpenDevice(int device, Deadline deadline);

  // Groups of some ranks each, for which all ranks of this group call it together: those with the
  // same `color` form one, in the order of their ranks here. A negative color takes part and gets
  // nothing. The new group may be used by another thread than this one, ends when this one is
  // aborted, and its failures leave this one whole. It must not outlive this one.
  std::unique_ptr<Group> Split(int color, Deadline deadline);

  // Ends the operation that runs, and all later ones, with kAborted and `reason`. The first reason
  // stays.
  void Abort(const std::string& reason);

  // How the ranks talk: "shared memory", "tcp", "rdma" or "shared memory within 2 hosts, tcp
  // between them".
  const std::string& description() const;

  class Impl;
  explicit Group(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::collective
