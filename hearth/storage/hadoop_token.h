// Delegation tokens, by which a process on a cluster with Kerberos authenticates. They never appear
// in a log or an error.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/storage/hadoop_conf.h"

namespace hearth::storage {

// Returns the token for a host or name service, in WebHDFS's form, from the contents of a file as
// YARN stores it at HADOOP_TOKEN_FILE_LOCATION; "" if it has none for HDFS. Tokens of other hosts
// are skipped: the server could misuse them. `hosts`: all names of the host, including its
// addresses and its name service; if empty (unknown), a single token is used. Throws kDataLoss for
// an invalid file.
std::string TokenIn(std::string_view credentials, const std::vector<std::string>& hosts);

// Returns the token from the file at HADOOP_TOKEN_FILE_LOCATION, or else "". Resolves the host's
// addresses if there is such a file.
std::string TokenFor(std::string_view authority, const HadoopConf& conf);

// The token that a client sends. Any thread.
class CurrentToken {
 public:
  // `find` returns the newest token, as TokenFor() does; without it `token` never changes.
  explicit CurrentToken(std::string token, std::function<std::string()> find = nullptr)
      : token_(std::move(token)), find_(std::move(find)) {}

  std::string Get() const;
  // Returns true if there is now another token than `refused`, which Get() returns from then on:
  // the owner of token files writes newer tokens before the old ones expire.
  bool Replace(const std::string& refused);

 private:
  mutable std::mutex mutex_;
  std::string token_;
  const std::function<std::string()> find_;
};

// `text` with '***' for the token, for all values of "delegation=", and for users and passwords in
// URLs.
std::string WithoutToken(std::string text, const std::string& token);

}  // namespace hearth::storage
