// Hadoop configuration of an HDFS client, and the user it acts as.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/storage/uri.h"

namespace hearth::storage {

// Properties of core-site.xml and hdfs-site.xml. References to other properties or environment
// variables (${name}, ${env.NAME}) are resolved. Immutable.
class HadoopConf {
 public:
  // Reads the files in HadoopConfFolder(); empty without such a folder. Throws for invalid files.
  static HadoopConf FromEnvironment();

  // Adds the properties of a text; `file` is for messages.
  void AddXml(std::string_view xml, const std::string& file);

  std::string Get(const std::string& name, const std::string& otherwise = "") const;
  std::vector<std::string> GetList(const std::string& name) const;

 private:
  std::string Resolve(std::string value) const;

  std::map<std::string, std::string> properties_;
};

// HADOOP_CONF_DIR; if that is not set, in a YARN container, the client's configuration that Spark
// has shipped. "" if there is neither.
std::string HadoopConfFolder();

// Adds the host of fs.defaultFS to hdfs:///path. Throws kInvalidArgument if there is none.
RemoteUri WithAuthority(RemoteUri uri, const HadoopConf& conf);

// The web addresses, as http://host:port, of the NameNodes for a URI with an authority: all
// NameNodes of a name service; else the configured address, or the host at Hadoop's default port.
std::vector<std::string> WebAddresses(const RemoteUri& uri, const HadoopConf& conf);

// Splits a comma-separated list; drops blanks and empty elements.
std::vector<std::string> SplitList(std::string_view list);

// HADOOP_USER_NAME, or else the process's user.
std::string HadoopUser();

// An environment variable; "" if it is not set.
std::string Environment(const char* name);

}  // namespace hearth::storage
