// The Hadoop configuration of an HDFS client, and the user as which it accesses HDFS.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/storage/uri.h"

namespace hearth::storage {

// The properties of core-site.xml and hdfs-site.xml. References to other properties and to
// environment variables (${name}, ${env.NAME}) are resolved when a property is read.
class HadoopConf {
 public:
  // Reads the files in HadoopConfFolder(). Empty if there is no such folder. Throws for invalid
  // files.
  static HadoopConf FromEnvironment();

  // Adds the properties in `xml`. `file` is used in messages.
  void AddXml(std::string_view xml, const std::string& file);

  std::string Get(const std::string& name, const std::string& otherwise = "") const;
  std::vector<std::string> GetList(const std::string& name) const;

 private:
  std::string Resolve(std::string value) const;

  std::map<std::string, std::string> properties_;
};

// HADOOP_CONF_DIR. If it is not set and this is a YARN container, the folder with the client's
// configuration that Spark has shipped. "" if there is neither.
std::string HadoopConfFolder();

// Adds the host of fs.defaultFS to a URI such as hdfs:///path. Throws kInvalidArgument if the URI
// has no host and none is configured.
RemoteUri WithAuthority(RemoteUri uri, const HadoopConf& conf);

// The web addresses (http://host:port) of the NameNodes for a URI with an authority. For a name
// service, these are all of its NameNodes; otherwise the configured address, or the host with
// Hadoop's default port.
std::vector<std::string> WebAddresses(const RemoteUri& uri, const HadoopConf& conf);

// Splits a comma-separated list. Blanks around elements and empty elements are dropped.
std::vector<std::string> SplitList(std::string_view list);

// HADOOP_USER_NAME, or else the user of the process.
std::string HadoopUser();

// The value of an environment variable; "" if it is not set.
std::string Environment(const char* name);

}  // namespace hearth::storage
