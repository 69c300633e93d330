// Delegation tokens: what a process on a cluster with Kerberos shows instead of a password. They
// never appear in a log or an error.
#pragma once

#include <string>
#include <string_view>

namespace hearth::storage {

// The token for a host or name service, in the form that WebHDFS takes, of the contents of a file
// as YARN leaves it at HADOOP_TOKEN_FILE_LOCATION; "" where it has none for HDFS. One that is
// meant for another host is taken where it is the only one. Throws kDataLoss for a damaged file.
std::string TokenIn(std::string_view credentials, std::string_view authority);

// That of HEARTH_HDFS_TOKEN, else of the file at HADOOP_TOKEN_FILE_LOCATION, else "".
std::string TokenFor(std::string_view authority);

// `text` with '***' for the token, and for whatever follows "delegation=".
std::string WithoutToken(std::string text, const std::string& token);

}  // namespace hearth::storage
