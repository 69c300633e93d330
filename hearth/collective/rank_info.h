// What each rank tells the others through the rendezvous so that they can connect.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "hearth/collective/peer.h"
#include "hearth/collective/rdma_device.h"
#include "hearth/collective/shared_page.h"

namespace hearth::collective {

struct RankInfo {
  Peer peer;  // the rank itself is not sent: it follows from the order of the processes
  std::string host_id;
  bool shares_memory = true;
  PageAddress page;
  std::string address;
  int port = 0;
  RdmaDevice rdma;
  bool encrypts = false;

  nlohmann::json ToJson() const;
  // Throws kDataLoss when a field is missing or of another type.
  static RankInfo FromJson(const nlohmann::json& json, int rank);
};

}  // namespace hearth::collective
