#include "hearth/collective/testing/device_testing.h"

#include <dlfcn.h>

#include "hearth/base/error.h"
#include "hearth/base/shared_library.h"
#include "hearth/collective/device/cuda_api.h"
#include "hearth/collective/device/nccl_api.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

StandIn Load() {
  cuda::Library().Get();
  nccl::Library().Get();
  StandIn found = {};
  const auto find = [](const char* library, const char* name, auto*& function) {
    Require(SharedLibrary({library}, RTLD_NOLOAD).Find(name, &function), ErrorCode::kUnavailable,
            "{} is not a stand-in: it has no {}", library, name);
  };
  constexpr const char* kCuda = "libcuda.so.1";
  constexpr const char* kNccl = "libnccl.so.2";
  find(kCuda, "hearth_stand_in_allocate", found.allocate);
  find(kCuda, "hearth_stand_in_free", found.free);
  find(kCuda, "hearth_stand_in_host", found.host);
  find(kCuda, "hearth_stand_in_launch", found.launch);
  find(kCuda, "hearth_stand_in_streams", found.streams);
  find(kNccl, "hearth_stand_in_refuse", found.refuse);
  find(kNccl, "hearth_stand_in_hang", found.hang);
  find(kNccl, "hearth_stand_in_break", found.break_down);
  find(kNccl, "hearth_stand_in_heal", found.heal);
  find(kNccl, "hearth_stand_in_communicators", found.communicators);
  return found;
}

std::string HostIdOf(Layout layout, int rank) {
  if (layout == Layout::kOneHost) return "";
  return std::to_string(layout == Layout::kPairs ? rank / 2 : rank);
}

}  // namespace

const StandIn& StandIn::Get() {
  static const StandIn found = Load();
  return found;
}

std::string NameOf(Layout layout) {
  switch (layout) {
    case Layout::kOneHost:
      return "OneHost";
    case Layout::kHosts:
      return "Hosts";
    case Layout::kPairs:
      return "Pairs";
  }
  return "Unknown";
}

void RunBeforeDevices(Layout layout, int ranks, const std::function<void(Group&)>& body) {
  RunRanks(ranks, [&](rendezvous::Member& member) {
    const auto groups = Group::Connect(member, {.host_id = HostIdOf(layout, member.rank())});
    body(*groups.front());
  });
}

void RunOnDevices(Layout layout, int ranks, const std::function<void(Group&)>& body) {
  RunBeforeDevices(layout, ranks, [&](Group& group) {
    Require(group.OpenDevice(group.rank(), Deadline::After(30)), ErrorCode::kInternal,
            "the stand-ins' devices are not used");
    body(group);
  });
}

}  // namespace hearth::collective
