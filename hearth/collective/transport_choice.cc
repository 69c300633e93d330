#include "hearth/collective/transport_choice.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "hearth/base/error.h"
#include "hearth/collective/ucx_api.h"

namespace hearth::collective {

GroupOptions WithChosenTransport(GroupOptions options) {
  const char* value = std::getenv("HEARTH_TRANSPORT");
  const std::string choice = value == nullptr ? "" : value;
  if (choice.empty() || choice == "auto") return options;
  if (choice == "tcp" || choice == "rdma") {
    options.shared_memory = false;
    options.wire = choice == "tcp" ? Medium::kTcp : Medium::kRdma;
  } else if (choice == "shm") {
    options.only_shared_memory = true;
  } else {
    Throw(ErrorCode::kInvalidArgument,
          "HEARTH_TRANSPORT={} in the environment: it is auto, shm, tcp or rdma", choice);
  }
  return options;
}

RdmaDevice OwnRdmaDevice(const GroupOptions& options) {
  if (options.wire == Medium::kTcp) return {.name = {}, .missing = "tcp is asked for"};
  if (options.ucx_transports.empty()) {
    RdmaDevice device = FindRdmaDevice();
    if (!device.name.empty()) device.name += ", UCX_TLS=" + UcxTransports(options);
    return device;
  }
  const std::string problem = ucx::WhyNoLibrary();
  if (!problem.empty()) return {.name = {}, .missing = problem};
  return {.name = "UCX_TLS=" + options.ucx_transports, .missing = {}};
}

Between ChooseBetween(const GroupOptions& options, const std::vector<RankInfo>& ranks) {
  const auto without = std::find_if(ranks.begin(), ranks.end(),
                                    [](const RankInfo& rank) { return rank.rdma.name.empty(); });
  if (without == ranks.end()) return {.rdma = true, .reason = ranks.front().rdma.name};
  const std::string reason =
      fmt::format("{} has no RDMA: {}", without->peer.name(), without->rdma.missing);
  Require(options.wire != Medium::kRdma, ErrorCode::kUnavailable,
          "RDMA is asked for, but {}; ask for auto or tcp", reason);
  return {.rdma = false, .reason = reason};
}

std::string UcxTransports(const GroupOptions& options) {
  if (!options.ucx_transports.empty()) return options.ucx_transports;
  const char* value = std::getenv("UCX_TLS");
  return value == nullptr || *value == '\0' ? "ib" : value;
}

}  // namespace hearth::collective
