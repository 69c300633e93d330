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
          "HEARTH_HDFS=libhdfs, or write the hdfs: URI behind it",
          named.text());
  const HadoopConf conf = HadoopConf::FromEnvironment();
  WebHdfsOptions options;
  RemoteUri uri = named;
  // HttpFS, or NameNodes behind other names than the configuration's.
  for (const std::string& told : SplitList(Environment("HEARTH_WEBHDFS"))) {
    options.addresses.push_back(Scheme(told).starts_with("http") ? told : "http://" + told);
  }
  if (options.addresses.empty()) {
    uri = WithAuthority(named, conf);
    options.addresses = WebAddresses(uri, conf);
  }
  options.user = HadoopUser();
  options.kerberos = WantsKerberos(conf);
  if (uri.authority.empty()) {  // it is what is meant, also where it is reached otherwise
    const std::string own = conf.Get("fs.defaultFS");
    if (Scheme(own) == uri.scheme) uri.authority = ParseRemote(own).authority;
  }
  options.find_token = [authority = uri.authority, conf] { return TokenFor(authority, conf); };
  options.token = options.find_token();
  return std::make_unique<WebHdfs>(std::move(options));
}

}  // namespace

bool IsHdfs(std::string_view scheme) {
  return scheme == "hdfs" || scheme == "viewfs" || scheme == "webhdfs" || scheme == "swebhdfs";
}

std::unique_ptr<FileSystem> OpenHdfs(const RemoteUri& uri, bool without_jvm) {
  if (without_jvm) return OpenWebHdfs(uri);
  const std::string told = Environment("HEARTH_HDFS");
  Require(told.empty() || told == "auto" || told == "libhdfs" || told == "webhdfs",
          ErrorCode::kInvalidArgument, "HEARTH_HDFS={} is none of auto, libhdfs and webhdfs", told);
  const bool over_http = uri.scheme == "webhdfs" || uri.scheme == "swebhdfs";
  if (told == "webhdfs" || over_http) return OpenWebHdfs(uri);
  const bool found = !FindLibHdfs().empty() && MissingOnClassPath().empty();
  if (told != "libhdfs" && !found) return OpenWebHdfs(uri);
  bool kerberos = false;
  try {
    kerberos = WantsKerberos(HadoopConf::FromEnvironment());
  } catch (const Error&) {
    // For messages alone: libhdfs reads its own.
  }
  return std::make_unique<LibHdfsFiles>(
      uri.authority.empty() ? "default" : uri.prefix(),
      kerberos ? "the owner of the Kerberos ticket or token" : "user " + HadoopUser());
}

}  // namespace hearth::storage
