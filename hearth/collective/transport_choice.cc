#include "hearth/collective/transport_choice.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "hearth/base/error.h"
#include "hearth/collective/transport/ucx_api.h"

namespace hearth::collective {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// `text` is empty, or a range of ports such as 7400-7499.
void SetPorts(const std::string& text, GroupOptions* options) {
  if (text.empty()) return;
  int first = 0, last = 0;
  // If the third conversion succeeds, there is text after the range.
  char rest = 0;
  const int found = std::sscanf(text.c_str(), "%d-%d%c", &first, &last, &rest);
  Require(found == 2 && first >= 1 && first <= last && last <= 65535, ErrorCode::kInvalidArgument,
          "HEARTH_MESH_PORT={} in the environment must be a range of ports, such as 7400-7499",
          text);
  options->listen_port = first;
  options->listen_ports = last - first + 1;
}

}  // namespace

GroupOptions WithChosenTransport(GroupOptions options) {
  const std::string tls = Variable("HEARTH_TLS");
  Require(tls.empty() || tls == "on" || tls == "off", ErrorCode::kInvalidArgument,
          "HEARTH_TLS={} in the environment must be on or off", tls);
  if (!tls.empty()) options.encrypt = tls == "on";
  if (options.listen_port == 0) SetPorts(Variable("HEARTH_MESH_PORT"), &options);
  const std::string choice = Variable("HEARTH_TRANSPORT");
  if (choice.empty() || choice == "auto") return options;
  if (choice == "tcp" || choice == "rdma") {
    options.shared_memory = false;
    options.wire = choice == "tcp" ? Medium::kTcp : Medium::kRdma;
  } else if (choice == "shm") {
    options.only_shared_memory = true;
  } else {
    Throw(ErrorCode::kInvalidArgument,
          "HEARTH_TRANSPORT={} in the environment must be auto, shm, tcp or rdma", choice);
  }
  return options;
}

RdmaDevice OwnRdmaDevice(const GroupOptions& options) {
  if (options.encrypt) return {.name = {}, .missing = "it requires TLS, which only tcp supports"};
  if (options.wire == Medium::kTcp) return {.name = {}, .missing = "it requires tcp"};
  if (options.ucx_transports.empty()) {
    RdmaDevice device = FindRdmaDevice();
    if (!device.name.empty()) device.name += ", UCX_TLS=" + UcxTransports(options);
    return device;
  }
  const std::string problem = ucx::Library().problem;
  if (!problem.empty()) return {.name = {}, .missing = problem};
  return {.name = "UCX_TLS=" + options.ucx_transports, .missing = {}};
}

// All ranks call this with the same table and therefore choose the same transport. RDMA is used
// only if every rank has it, because a mesh has only one transport.
InterHostTransport ChooseInterHostTransport(const GroupOptions& options,
                                            const std::vector<RankInfo>& ranks) {
  const auto other = std::find_if(ranks.begin(), ranks.end(), [&](const RankInfo& rank) {
    return rank.encrypts != ranks.front().encrypts;
  });
  Require(other == ranks.end(), ErrorCode::kInvalidArgument,
          "{} and {} differ in HEARTH_TLS, which must be the same for all ranks",
          ranks.front().peer.name(), other == ranks.end() ? "" : other->peer.name());
  const auto without = std::find_if(ranks.begin(), ranks.end(),
                                    [](const RankInfo& rank) { return rank.rdma.name.empty(); });
  if (without == ranks.end()) return {.rdma = true, .reason = ranks.front().rdma.name};
  const std::string reason =
      fmt::format("{} does not use RDMA: {}", without->peer.name(), without->rdma.missing);
  Require(options.wire != Medium::kRdma, ErrorCode::kUnavailable,
          "RDMA is required, but {}; use auto or tcp", reason);
  return {.encrypted = options.encrypt, .reason = reason};
}

std::string UcxTransports(const GroupOptions& options) {
  if (!options.ucx_transports.empty()) return options.ucx_transports;
  const std::string chosen = Variable("UCX_TLS");
  return chosen.empty() ? "ib" : chosen;
}

}  // namespace hearth::collective
