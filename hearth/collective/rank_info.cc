#include "hearth/collective/rank_info.h"

#include <exception>

#include "hearth/base/error.h"
#include "hearth/base/hmac.h"

namespace hearth::collective {

nlohmann::json RankInfo::ToJson() const {
  return {{"host", peer.host},       {"host_id", host_id},  {"shares_memory", shares_memory},
          {"pid", page.pid},         {"fd", page.fd},       {"nonce", HexEncode(page.nonce)},
          {"address", address},      {"port", port},        {"rdma", rdma.name},
          {"no_rdma", rdma.missing}, {"encrypts", encrypts}};
}

RankInfo RankInfo::FromJson(const nlohmann::json& json, int rank) {
  try {
    RankInfo info;
    info.peer = {rank, json.at("host")};
    info.host_id = json.at("host_id");
    info.shares_memory = json.at("shares_memory");
    info.page = {json.at("pid"), json.at("fd"), HexDecode(json.at("nonce").get<std::string>())};
    info.address = json.at("address");
    info.port = json.at("port");
    info.rdma = {json.at("rdma"), json.at("no_rdma")};
    info.encrypts = json.at("encrypts");
    return info;
  } catch (const std::exception& error) {  // invalid JSON, or a nonce that is not hex
    throw Error(ErrorCode::kDataLoss,
                fmt::format("the connection data of rank {} is invalid", rank), error);
  }
}

}  // namespace hearth::collective
