// hearth.native._core: groups of ranks.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>

#include "collective_request.h"
#include "gil.h"
#include "hearth/collective/group.h"
#include "hearth/collective/stall_watch.h"
#include "hearth/rendezvous/member.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using collective::Group;

constexpr double kCollectiveTimeout = 30;  // default in seconds

std::shared_ptr<Group> Connect(rendezvous::Member& member, const std::string& listen_host,
                               bool shared_memory, const std::string& host_id, double timeout_s) {
  collective::GroupOptions options;
  options.listen_host = listen_host;
  options.shared_memory = shared_memory;
  options.host_id = host_id;
  options.timeout_s = timeout_s;
  return WithoutGil([&] { return std::move(Group::Connect(member, options).front()); });
}

nb::ndarray<nb::numpy, float> Allocate(const nb::object& self, size_t count) {
  auto& group = *nb::cast<std::shared_ptr<Group>>(self);
  void* memory = WithoutGil([&] { return group.Allocate(count * sizeof(float)); });
  // The array keeps the group alive, because the group owns the memory.
  return {memory, {count}, self};
}

void Run(Group& group, const ArrayRequest& request, double timeout_s) {
  // For() needs the GIL to read the arrays' descriptions. `request` keeps the arrays alive during
  // the operation.
  const collective::Request what = request.For(group);
  const ReleasedGil released;
  group.Run(what, Deadline::After(timeout_s));
}

void AllReduce(Group& group, const OutputArray& array, const std::string& op, double timeout_s) {
  ArrayRequest request("all_reduce", array, {});
  request.op = OpOf(op);
  Run(group, request, timeout_s);
}

void Broadcast(Group& group, const OutputArray& array, int root, double timeout_s) {
  // Broadcasts bytes, so that any type works.
  collective::Request request = {.operation = collective::Operation::kBroadcast,
                                 .output = array.data(),
                                 .count = array.nbytes(),
                                 .type = collective::DataType::kUint8,
                                 .peer = root};
  request.signature = SignatureOf(array);
  const ReleasedGil released;
  group.Run(request, Deadline::After(timeout_s));
}

std::shared_ptr<Group> Split(Group& group, int color, double timeout_s) {
  return WithoutGil([&] { return group.Split(color, Deadline::After(timeout_s)); });
}

}  // namespace

void RegisterCollective(nb::module_& m) {
  RegisterCollectiveRequest(m);
  nb::class_<Group>(m, "Group",
                    "One rank of a group that reduces arrays together. All ranks call the same "
                    "methods in the same order. Raises ConnectionError if a rank left, and "
                    "TimeoutError, both naming it.")
      .def_static("connect", &Connect, "member"_a, "listen_host"_a = "127.0.0.1",
                  "shared_memory"_a = true, "host_id"_a = "", "timeout_s"_a = kCollectiveTimeout,
                  nb::keep_alive<0, 1>(), "Connects to all members of the rendezvous.")
      .def_prop_ro("rank", &Group::rank)
      .def_prop_ro("world", &Group::world)
      .def_prop_ro("description", &Group::description, "How the ranks communicate, in words.")
      .def("allocate", &Allocate, "count"_a,
           "A zeroed float32 array in memory that the ranks share; reduced without copies.")
      .def(
          "all_reduce", &AllReduce, "array"_a.noconvert(), "op"_a = "sum",
          "timeout_s"_a = kCollectiveTimeout,
          "Combines the contiguous arrays of all ranks in place, by 'sum', 'mean', 'min' or 'max'.")
      .def("broadcast", &Broadcast, "array"_a.noconvert(), "root"_a = 0,
           "timeout_s"_a = kCollectiveTimeout, "Copies rank root's contiguous array to all ranks.")
      .def(
          "barrier",
          [](Group& group, double timeout_s) { group.Barrier(Deadline::After(timeout_s)); },
          "timeout_s"_a = kCollectiveTimeout, ReleaseGil(),
          "Returns once all ranks have called it.")
      .def("run", &Run, "request"_a, "timeout_s"_a = kCollectiveTimeout,
           "Executes one Request. Raises ValueError, naming both calls, if a rank requested "
           "a different one.")
      .def("split", &Split, "color"_a, "timeout_s"_a = kCollectiveTimeout, nb::keep_alive<0, 1>(),
           "All ranks call it together: ranks with the same color form a new group; a negative "
           "color returns None.")
      .def("abort", &Group::Abort, "reason"_a,
           "Thread-safe: ends the running operation, and all later ones, with this reason.");
  m.def(
      "stall_counts",
      [] {
        const collective::StallCounts counts = collective::CountStalls();
        return std::pair(counts.reports, counts.timeouts);
      },
      "This process's reports of waiting operations, and its operations that timed out before a "
      "rank had arrived.");
  RegisterCollectiveQueue(m);
}

}  // namespace hearth::bindings
