#include "hearth/storage/hadoop_conf.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "hearth/base/error.h"
#include "hearth/storage/local_files.h"

namespace hearth::storage {
namespace {

constexpr int kMaxSubstitutions = 20;  // Hadoop's limit
constexpr char kBlanks[] = " \t\r\n";

std::string Trimmed(std::string_view text) {
  const size_t start = text.find_first_not_of(kBlanks);
  if (start == text.npos) return "";
  return std::string(text.substr(start, text.find_last_not_of(kBlanks) + 1 - start));
}

// Removes XML comments. Hadoop's sample files contain whole properties in comments, which must be
// ignored.
std::string WithoutComments(std::string_view xml) {
  std::string text;
  for (;;) {
    const size_t start = xml.find("<!--");
    text.append(xml.substr(0, start));
    if (start == xml.npos) return text;
    const size_t end = xml.find("-->", start + 4);
    if (end == xml.npos) return text;
    xml.remove_prefix(end + 3);
  }
}

std::string Unescaped(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
      {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}}};
  std::string plain;
  while (!text.empty()) {
    const auto* entity = std::ranges::find_if(
        kEntities, [&](const auto& each) { return text.starts_with(each.first); });
    const bool found = entity != kEntities.end();
    plain += found ? entity->second : text.front();
    text.remove_prefix(found ? entity->first.size() : 1);
  }
  return plain;
}

// Returns the text between <tag> and </tag>, searching from `*at` on. Moves `*at` past </tag>.
std::optional<std::string_view> Between(std::string_view xml, std::string_view tag, size_t* at) {
  const std::string open = fmt::format("<{}>", tag), close = fmt::format("</{}>", tag);
  const size_t start = xml.find(open, *at);
  if (start == xml.npos) return std::nullopt;
  const size_t end = xml.find(close, start);
  if (end == xml.npos) return std::nullopt;
  *at = end + close.size();
  return xml.substr(start + open.size(), end - start - open.size());
}

std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

// A daemon may be configured to listen on all interfaces (0.0.0.0). Clients need its host name
// then.
std::string Reachable(const std::string& web, const std::string& rpc) {
  if (!web.starts_with("0.0.0.0:")) return web;
  return HostOf(rpc) + web.substr(web.rfind(':'));
}

std::string WebAddress(const HadoopConf& conf, const std::string& suffix, const std::string& rpc) {
  const bool https = conf.Get("dfs.http.policy") == "HTTPS_ONLY";
  const std::string key = https ? "dfs.namenode.https-address" : "dfs.namenode.http-address";
  // Hadoop 3's default ports.
  const std::string otherwise = HostOf(rpc) + (https ? ":9871" : ":9870");
  return (https ? "https://" : "http://") + Reachable(conf.Get(key + suffix, otherwise), rpc);
}

// The value of "NAME", "NAME-DEFAULT" (if NAME is unset) or "NAME:-DEFAULT" (if it is unset or
// empty), as in Hadoop and in shells.
std::string OfEnvironment(const std::string& reference) {
  const size_t dash = reference.find('-');
  if (dash == reference.npos) return Environment(reference.c_str());
  const bool or_empty = dash > 0 && reference[dash - 1] == ':';
  const char* value = std::getenv(reference.substr(0, or_empty ? dash - 1 : dash).c_str());
  const bool use_default = value == nullptr || (or_empty && *value == '\0');
  return use_default ? reference.substr(dash + 1) : value;
}

}  // namespace

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string HadoopConfFolder() {
  const std::string choice = Environment("HADOOP_CONF_DIR");
  if (!choice.empty() || Environment("CONTAINER_ID").empty()) return choice;
  // PWD is the container's folder, set by YARN. The program may have changed its current directory.
  const std::string folder = Join(Environment("PWD"), "__spark_conf__/__hadoop_conf__");
  return LocalFiles().Stat(folder) ? folder : "";
}

HadoopConf HadoopConf::FromEnvironment() {
  HadoopConf conf;
  const std::string folder = HadoopConfFolder();
  if (folder.empty()) return conf;
  LocalFiles files;
  // Loaded in Hadoop's order: a property in hdfs-site.xml replaces the same one in core-site.xml.
  for (const char* name : {"core-site.xml", "hdfs-site.xml"}) {
    const std::string file = Join(folder, name);
    if (files.Stat(file)) conf.AddXml(files.ReadAll(file), file);
  }
  return conf;
}

void HadoopConf::AddXml(std::string_view xml, const std::string& file) {
  const std::string text = WithoutComments(xml);
  Require(text.find("<configuration") != text.npos, ErrorCode::kInvalidArgument,
          "{} has no <configuration>: it is not a Hadoop configuration", file);
  size_t at = 0;
  while (const auto property = Between(text, "property", &at)) {
    // <name> and <value> may be in either order.
    size_t inside = 0;
    const auto name = Between(*property, "name", &inside);
    inside = 0;
    const auto value = Between(*property, "value", &inside);
    if (name && value) properties_[Unescaped(Trimmed(*name))] = Unescaped(Trimmed(*value));
  }
}

std::string HadoopConf::Resolve(std::string value) const {
  for (int i = 0; i < kMaxSubstitutions; ++i) {
    // The last "${" is an innermost reference, so ${a.${b}} is resolved from the inside out. As in
    // Hadoop, an unknown name is left as it is, and the number of steps is limited because
    // properties may refer to each other in a cycle.
    const size_t start = value.rfind("${");
    const size_t end = value.find('}', std::min(start, value.size()));
    if (start == value.npos || end == value.npos) break;
    const std::string name = value.substr(start + 2, end - start - 2);
    const auto known = properties_.find(name);
    if (name.starts_with("env.")) {
      value.replace(start, end + 1 - start, OfEnvironment(name.substr(4)));
    } else if (known != properties_.end()) {
      value.replace(start, end + 1 - start, known->second);
    } else {
      break;
    }
  }
  return value;
}

std::string HadoopConf::Get(const std::string& name, const std::string& otherwise) const {
  const auto found = properties_.find(name);
  const std::string value = found == properties_.end() ? "" : Resolve(found->second);
  return value.empty() ? otherwise : value;
}

std::vector<std::string> HadoopConf::GetList(const std::string& name) const {
  return SplitList(Get(name));
}

std::vector<std::string> SplitList(std::string_view list) {
  std::vector<std::string> members;
  for (size_t start = 0; start < list.size();) {
    const size_t end = std::min(list.find(',', start), list.size());
    const std::string member = Trimmed(list.substr(start, end - start));
    if (!member.empty()) members.push_back(member);
    start = end + 1;
  }
  return members;
}

RemoteUri WithAuthority(RemoteUri uri, const HadoopConf& conf) {
  if (!uri.authority.empty()) return uri;
  const std::string default_fs = conf.Get("fs.defaultFS");
  const bool same_scheme = Scheme(default_fs) == uri.scheme;
  if (same_scheme) uri.authority = ParseRemote(default_fs).authority;
  const std::string folder = HadoopConfFolder();
  Require(!uri.authority.empty(), ErrorCode::kInvalidArgument,
          "cannot open {} as user {}: it names no host, and {}; write {}://host:port{}, or set "
          "HADOOP_CONF_DIR to the folder with the cluster's core-site.xml",
          uri.text(), HadoopUser(),
          folder.empty() ? "HADOOP_CONF_DIR is not set"
                         : fmt::format("core-site.xml in {} has no fs.defaultFS of that scheme "
                                       "('{}')",
                                       folder, default_fs),
          uri.scheme, uri.path);
  return uri;
}

std::vector<std::string> WebAddresses(const RemoteUri& uri, const HadoopConf& conf) {
  // A webhdfs: URI contains a web address. An hdfs: URI contains the address of the RPC port, so
  // the web address is read from the configuration.
  if (uri.scheme == "webhdfs") return {"http://" + uri.authority};
  if (uri.scheme == "swebhdfs") return {"https://" + uri.authority};
  const std::vector<std::string> services = conf.GetList("dfs.nameservices");
  const bool is_service = std::ranges::find(services, uri.authority) != services.end();
  const auto ids =
      is_service ? conf.GetList("dfs.ha.namenodes." + uri.authority) : std::vector<std::string>();
  std::vector<std::string> addresses;
  for (const std::string& id : ids) {
    const std::string suffix = fmt::format(".{}.{}", uri.authority, id);
    const std::string rpc = conf.Get("dfs.namenode.rpc-address" + suffix);
    addresses.push_back(WebAddress(conf, suffix, rpc));
  }
  if (!addresses.empty()) return addresses;
  if (is_service) {
    const std::string suffix = "." + uri.authority;
    return {WebAddress(conf, suffix, conf.Get("dfs.namenode.rpc-address" + suffix))};
  }
  // The URI may refer to the configured NameNode, or to another cluster's NameNode with default
  // ports.
  const std::string own = conf.Get("fs.defaultFS");
  const bool is_own = conf.Get("dfs.namenode.rpc-address") == uri.authority ||
                      (Scheme(own) == uri.scheme && ParseRemote(own).authority == uri.authority);
  const bool has_port = uri.authority.rfind(':') != std::string::npos;
  // 8020 is Hadoop's default RPC port.
  const std::string rpc = has_port ? uri.authority : uri.authority + ":8020";
  return {WebAddress(is_own ? conf : HadoopConf(), "", rpc)};
}

std::string HadoopUser() {
  const std::string choice = Environment("HADOOP_USER_NAME");
  if (!choice.empty()) return choice;
  // getpwuid() uses one buffer for all threads, so getpwuid_r() is called.
  std::array<char, 4096> buffer{};
  passwd entry{}, *found = nullptr;
  getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::to_string(geteuid()) : found->pw_name;
}

}  // namespace hearth::storage
