// Delegation tokens: what a process on a cluster with Kerberos shows instead of a password. They
// never appear in a log or an error.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/storage/hadoop_conf.h"

namespace hearth::storage {

// The token for a host or name service, in the form that WebHDFS takes, of the contents of a file
// as YARN leaves it at HADOOP_TOKEN_FILE_LOCATION; "" where it has none for HDFS. One that is
// meant for another host is not taken: that host could use it. `hosts`: all names of the host, its
// addresses and its name service's name among them; empty where it is not known, then the only
// token is taken. Throws kDataLoss for a damaged file.
std::string TokenIn(std::string_view credentials, const std::vector<std::string>& hosts);

// That of HEARTH_HDFS_TOKEN, else of the file at HADOOP_TOKEN_FILE_LOCATION, else "". Looks the
// host's addresses up where there is such a file.
std::string TokenFor(std::string_view authority, const HadoopConf& conf);

// The token that a client shows. Any thread.
class CurrentToken {
 public:
  // `find` looks for one, as TokenFor() does; without it `token` stays.
  explicit CurrentToken(std::string token, std::function<std::string()> find = nullptr)
      : token_(std::move(token)), find_(std::move(find)) {}

  std::string Get() const;
  // Whether there is another one than `refused` by now, which Get() gives from then on: whoever
  // leaves tokens in files leaves newer ones there before the old ones end.
  bool Replace(const std::string& refused);

 private:
  mutable std::mutex mutex_;
  std::string token_;
  const std::function<std::string()> find_;
};

// `text` with '***' for the token, for whatever follows "delegation=", and for users and passwords
// in addresses.
std::string WithoutToken(std::string text, const std::string& token);

}  // namespace hearth::storage
