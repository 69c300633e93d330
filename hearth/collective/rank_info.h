#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "hearth/collective/operation/peer.h"
#include "hearth/collective/shared_memory/shared_page.h"
#include "hearth/collective/transport/rdma_device.h"

namespace hearth::collective {

// Connection data of a rank, exchanged through the rendezvous.
struct RankInfo {
  Peer peer;  // the rank is not sent, because the order of the processes determines it
  std::string host_id;
  bool shares_memory = true;
  PageAddress page;
  std::string address;
  int port = 0;
  RdmaDevice rdma;
  bool encrypts = false;

  nlohmann::json ToJson() const;
  // Throws kDataLoss if a field is missing or of the wrong type, or if the nonce is not hex.
  static RankInfo FromJson(const nlohmann::json& json, int rank);
};

}  // namespace hearth::collective
