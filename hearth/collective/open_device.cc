// Enables operations on GPU memory. The ranks exchange information about their devices, so that all
// make the same decision. NCCL then connects them with an id that rank 0 broadcasts through the
// group.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/log.h"
#include "hearth/collective/gather_texts.h"
#include "hearth/collective/group_impl.h"

namespace hearth::collective {
namespace {

// A rank's device and NCCL version.
struct Offer {
  std::string name;      // name of the rank
  bool device = false;   // true if the rank has a device, even if other ranks have the same one
  std::string location;  // unique id of the device across hosts
  std::string version;   // version of NCCL
  std::string problem;   // why NCCL cannot use the device, or empty
};

std::string ToText(const Offer& offer) {
  return nlohmann::json{{"name", offer.name},
                        {"device", offer.device},
                        {"location", offer.location},
                        {"version", offer.version},
                        {"problem", offer.problem}}
      .dump();
}

Offer FromText(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    return {json.at("name"), json.at("device"), json.at("location"), json.at("version"),
            json.at("problem")};
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kDataLoss, "a rank sent invalid data about its GPU", error);
  }
}

// Returns an id of this host that is the same in all of the host's containers.
std::string BootId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::string LocationOf(int ordinal) {
  const cuda::Api& api = cuda::Library().Get();
  int device = 0;
  char bus_id[64] = {};
  cuda::Check(api, api.init(0), "start");
  cuda::Check(api, api.device_get(&device, ordinal), "find the device");
  cuda::Check(api, api.bus_id(bus_id, sizeof bus_id, device), "find the device's bus");
  return BootId() + " " + bus_id;
}

Offer MakeOffer(int ordinal, const std::string& forbidden) {
  Offer offer;
  if (ordinal < 0) return offer;
  offer.device = true;
  offer.problem = forbidden;
  if (!offer.problem.empty()) return offer;
  try {
    offer.version = nccl::Version();
    offer.location = LocationOf(ordinal);
  } catch (const Error& error) {
    offer.problem = error.message();
  }
  return offer;
}

// Returns why at least one rank cannot use NCCL, or empty. The result is the same on all ranks.
std::string ProblemOf(const std::vector<Offer>& offers) {
  for (size_t i = 0; i < offers.size(); ++i) {
    const Offer& offer = offers[i];
    if (!offer.device) return offer.name + " has no GPU";
    if (!offer.problem.empty()) return fmt::format("{}: {}", offer.name, offer.problem);
    if (offer.version != offers[0].version) {
      return fmt::format("{} has NCCL {}, but {} has {}", offers[0].name, offers[0].version,
                         offer.name, offer.version);
    }
    for (size_t j = 0; j < i; ++j) {
      if (offers[j].location != offer.location) continue;
      return fmt::format("{} and {} have the same GPU", offers[j].name, offer.name);
    }
  }
  return "";
}

// Returns why the settings exclude NCCL, or empty. NCCL chooses its transports itself and does not
// encrypt.
std::string Forbidden(const GroupOptions& options, bool one_host) {
  if (options.only_shared_memory) return "shm is required";
  if (one_host && options.shared_memory) return "";
  if (options.encrypt) return "TLS is required between hosts, which NCCL does not support";
  if (options.wire == Medium::kTcp) return "TCP is required";
  if (options.wire == Medium::kRdma) return "rdma is required";
  return "";
}

// The first non-empty problem, with its rank's name.
std::string FirstProblem(const std::vector<std::string>& problems,
                         const std::vector<Offer>& offers) {
  for (size_t i = 0; i < problems.size(); ++i) {
    if (!problems[i].empty()) return fmt::format("{}: {}", offers[i].name, problems[i]);
  }
  return "";
}

// NCCL's connection id.
struct NcclId {
  nccl::UniqueId id;
  bool is_valid = false;
};

// Creates the id on rank 0 and broadcasts it.
NcclId ShareNcclId(Group& group, Deadline deadline) {
  NcclId nccl_id;
  if (group.rank() == 0) {
    nccl_id.is_valid = nccl::Library().Get().get_unique_id(&nccl_id.id) == nccl::kSuccess;
  }
  group.Broadcast(&nccl_id, sizeof nccl_id, 0, deadline);
  return nccl_id;
}

}  // namespace

std::string Group::Impl::ConnectDevices(int device, const nccl::UniqueId& id, Deadline deadline) {
  NcclGroup::Membership membership = {
      .rank = rank, .world = world, .abort = abort, .departed_rank = [this] {
        return backend->DepartedRank();
      }};
  try {
    devices = std::make_unique<NcclGroup>(device, id, std::move(membership), deadline);
    return "";
  } catch (const Error& error) {
    // An abort breaks the group. After any other failure, the group works without NCCL.
    if (error.code() == ErrorCode::kAborted) throw;
    return error.message();
  }
}

bool Group::OpenDevice(int device, Deadline deadline) {
  const bool one_host = impl_->local->size() == world();
  Offer own = MakeOffer(device, Forbidden(impl_->identity.options, one_host));
  own.name = Peer{rank(), impl_->identity.host}.name();
  std::vector<Offer> offers;
  for (const std::string& text : GatherTexts(*this, ToText(own), deadline)) {
    offers.push_back(FromText(text));
  }
  const auto has_device = [](const Offer& offer) { return offer.device; };
  if (std::none_of(offers.begin(), offers.end(), has_device)) return false;
  std::string problem = ProblemOf(offers);
  if (problem.empty() && world() > 1) {
    const NcclId nccl_id = ShareNcclId(*this, deadline);
    // Half of the remaining time at most, so that the other ranks can still be notified.
    const double patience = std::min(impl_->identity.options.timeout_s, deadline.remaining() / 2);
    const std::string failed =
        nccl_id.is_valid ? impl_->ConnectDevices(device, nccl_id.id, Deadline::After(patience))
                         : "NCCL cannot create an id";
    // If one rank fails, all ranks fall back to host memory, because NCCL needs every rank.
    problem = FirstProblem(GatherTexts(*this, failed, deadline), offers);
    if (!problem.empty()) impl_->devices.reset();
  }
  const bool uses = problem.empty() && world() > 1;
  if (rank() == 0 && world() > 1) {
    const std::string how =
        uses ? "by NCCL " + offers[0].version : "through host memory (" + problem + ")";
    log::Info("{} ranks exchange GPU memory {}", world(), how);
  }
  return uses;
}

}  // namespace hearth::collective
