#include "hearth/storage/hdfs.h"

#include "hearth/base/error.h"
#include "hearth/storage/hadoop_conf.h"
#include "hearth/storage/hadoop_token.h"
#include "hearth/storage/libhdfs.h"
#include "hearth/storage/webhdfs.h"

namespace hearth::storage {
namespace {

bool WantsKerberos(const HadoopConf& conf) {
  return conf.Get("hadoop.security.authentication") == "kerberos";
}

std::unique_ptr<FileSystem> OpenWebHdfs(const RemoteUri& named) {
  Require(named.scheme != "viewfs", ErrorCode::kUnimplemented,
          "cannot open {}: viewfs: needs libhdfs; install it (HADOOP_HOME) and set "
          "HEARTH_HDFS=libhdfs, or give the hdfs: URI to which it is mapped",
          named.text());
  const HadoopConf conf = HadoopConf::FromEnvironment();
  WebHdfsOptions options;
  RemoteUri uri = named;
  // HEARTH_WEBHDFS replaces the configured addresses, with that of HttpFS or with other names of
  // the NameNodes.
  for (const std::string& choice : SplitList(Environment("HEARTH_WEBHDFS"))) {
    options.addresses.push_back(Scheme(choice).starts_with("http") ? choice : "http://" + choice);
  }
  if (options.addresses.empty()) {
    uri = WithAuthority(named, conf);
    options.addresses = WebAddresses(uri, conf);
  }
  options.user = HadoopUser();
  options.kerberos = WantsKerberos(conf);
  // A URI without an authority refers to the default file system, even if HEARTH_WEBHDFS sets the
  // addresses.
  if (uri.authority.empty()) {
    const std::string own = conf.Get("fs.defaultFS");
    if (Scheme(own) == uri.scheme) uri.authority = ParseRemote(own).authority;
  }
  // The lambda captures by value, because it is called until the process ends.
  options.find_token = [authority = uri.authority, conf] { return TokenFor(authority, conf); };
  options.token = options.find_token();
  return std::make_unique<WebHdfs>(std::move(options));
}

}  // namespace

bool IsHdfs(std::string_view scheme) {
  return scheme == "hdfs" || scheme == "viewfs" || scheme == "webhdfs" || scheme == "swebhdfs";
}

std::unique_ptr<FileSystem> OpenHdfs(const RemoteUri& uri, bool without_jvm) {
  // Checked before HEARTH_HDFS is read, because the caller's process must not start a JVM, whatever
  // the user has chosen.
  if (without_jvm) return OpenWebHdfs(uri);
  const std::string choice = Environment("HEARTH_HDFS");
  Require(choice.empty() || choice == "auto" || choice == "libhdfs" || choice == "webhdfs",
          ErrorCode::kInvalidArgument, "HEARTH_HDFS={} must be auto, libhdfs or webhdfs", choice);
  const bool over_http = uri.scheme == "webhdfs" || uri.scheme == "swebhdfs";
  if (choice == "webhdfs" || over_http) return OpenWebHdfs(uri);
  // The library and the class path are both checked before libhdfs is chosen, because a JVM without
  // all jars ends the process instead of returning an error.
  const bool found = !FindLibHdfs().empty() && MissingOnClassPath().empty();
  if (choice != "libhdfs" && !found) return OpenWebHdfs(uri);
  bool kerberos = false;
  try {
    kerberos = WantsKerberos(HadoopConf::FromEnvironment());
  } catch (const Error&) {
    // `kerberos` is used only in messages; libhdfs reads the configuration itself.
  }
  return std::make_unique<LibHdfsFiles>(
      uri.authority.empty() ? "default" : uri.prefix(),
      kerberos ? "the owner of the Kerberos ticket or token" : "user " + HadoopUser());
}

}  // namespace hearth::storage
