// Delegation tokens, with which a process authenticates on a cluster with Kerberos. They never
// appear in logs or errors.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/storage/hadoop_conf.h"

namespace hearth::storage {

// Returns the token for a host or name service, in the format of WebHDFS's URLs, or "" if
// `credentials` contains none for HDFS. `credentials` is the content of the file that YARN stores
// at HADOOP_TOKEN_FILE_LOCATION. Tokens for other hosts are skipped, because the server could
// misuse them. `hosts` lists all names of the host, including its addresses and its name service.
// If `hosts` is empty (unknown), a token is returned only if there is exactly one. Throws kDataLoss
// for an invalid file.
std::string TokenIn(std::string_view credentials, const std::vector<std::string>& hosts);

// Returns the token for `authority` from the file at HADOOP_TOKEN_FILE_LOCATION, or "" if there is
// none. If the file exists, resolves the addresses of the host in `authority`.
std::string TokenFor(std::string_view authority, const HadoopConf& conf);

// The token that a client sends. Thread-safe.
class CurrentToken {
 public:
  // `find` returns the newest token, like TokenFor(). Without it, the token never changes.
  explicit CurrentToken(std::string token, std::function<std::string()> find = nullptr)
      : token_(std::move(token)), find_(std::move(find)) {}

  std::string Get() const;
  // Replaces the token that a server has refused with a newer one, which Get() returns from then
  // on. Returns false if there is no other token. The owner of a token file writes newer tokens to
  // it before the old ones expire.
  bool Replace(const std::string& refused);

 private:
  mutable std::mutex mutex_;
  std::string token_;
  const std::function<std::string()> find_;
};

// Replaces the token, all values of "delegation=", and users and passwords in URLs with '***'.
std::string WithoutToken(std::string text, const std::string& token);

}  // namespace hearth::storage
