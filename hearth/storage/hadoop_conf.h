// What a client of HDFS needs of a cluster's configuration, and who this process is to it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/storage/uri.h"

namespace hearth::storage {

// The properties of core-site.xml and hdfs-site.xml. Values that name other properties or
// environment variables (${name}, ${env.NAME}) are filled in. Immutable.
class HadoopConf {
 public:
  // Those in HadoopConfFolder(); none where there is no such. Throws where a file is damaged.
  static HadoopConf FromEnvironment();

  // Adds the properties of a text; `file` is for messages.
  void AddXml(std::string_view xml, const std::string& file);

  std::string Get(const std::string& name, const std::string& otherwise = "") const;
  std::vector<std::string> GetList(const std::string& name) const;

 private:
  std::string Filled(std::string value) const;

  std::map<std::string, std::string> properties_;
};

// HADOOP_CONF_DIR; where that is not set, in a container of YARN, the client's configuration that
// Spark has put there. "" where there is neither.
std::string HadoopConfFolder();

// hdfs:///path gets the host of fs.defaultFS. Throws kInvalidArgument where there is none.
RemoteUri WithAuthority(RemoteUri uri, const HadoopConf& conf);

// The web addresses, as http://host:port, of the NameNodes of a URI that has an authority: those
// of a name service, all of them; else the configured one, or the host at Hadoop's usual port.
std::vector<std::string> WebAddresses(const RemoteUri& uri, const HadoopConf& conf);

// The members of a list with commas, without blanks and empty ones.
std::vector<std::string> SplitList(std::string_view list);

// HADOOP_USER_NAME, else the process's user.
std::string HadoopUser();

// An environment variable, "" where it is not set.
std::string Environment(const char* name);

}  // namespace hearth::storage
