#include "hearth/storage/hdfs.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "hearth/base/testing/error_testing.h"
#include "hearth/storage/libhdfs.h"
#include "hearth/storage/testing/hdfs_environment_testing.h"
#include "hearth/storage/testing/webhdfs_server_testing.h"
#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class OpenHdfsTest : public HdfsEnvironmentTest {
 protected:
  static std::unique_ptr<FileSystem> OpenUri(const std::string& uri) {
    return OpenHdfs(ParseRemote(uri), /*without_jvm=*/false);
  }
  void Configure(const std::string& core_site) {
    std::filesystem::create_directories(folder_ / "conf");
    std::ofstream(folder_ / "conf/core-site.xml") << core_site;
    Set("HADOOP_CONF_DIR", folder_ / "conf");
  }
};

TEST_F(OpenHdfsTest, RejectsAVariableWithoutAFile) {
  std::filesystem::create_directories(folder_ / "lib/native");
  std::ofstream(folder_ / "lib/native/libhdfs.so") << "x";
  Set("HADOOP_HOME", folder_);
  Set("HEARTH_LIBHDFS", folder_ / "missing.so");
  SetClassPath({"hadoop-common-3.5.0.jar", "commons-lang3-3.17.0.jar"});
  const Error error = Thrown([] { OpenHdfs(ParseRemote("hdfs://nn:1/a"), false); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("HEARTH_LIBHDFS names " + folder_.string()));
  Set("HEARTH_HDFS", "webhdfs");
  EXPECT_NO_THROW(OpenHdfs(ParseRemote("hdfs://nn:1/a"), false));
}

TEST_F(OpenHdfsTest, IsUsedIfFoundWithAClassPath) {
  const auto takes_libhdfs = [](const char* uri, bool without_jvm = false) {
    const auto files = OpenHdfs(ParseRemote(uri), without_jvm);
    return dynamic_cast<LibHdfsFiles*>(files.get()) != nullptr;
  };
  EXPECT_FALSE(takes_libhdfs("hdfs://nn:1/a"));
  Set("HEARTH_LIBHDFS", HEARTH_STAND_IN_LIBHDFS);
  EXPECT_FALSE(takes_libhdfs("hdfs://nn:1/a")) << "without a class path its JVM is of no use";
  SetClassPath({"hadoop-common-3.5.0.jar", "commons-lang3-3.17.0.jar"});
  EXPECT_TRUE(takes_libhdfs("hdfs://nn:1/a"));
  EXPECT_TRUE(takes_libhdfs("hdfs:///a"));
  EXPECT_FALSE(takes_libhdfs("webhdfs://nn:1/a"));
  EXPECT_FALSE(takes_libhdfs("hdfs://nn:1/a", /*without_jvm=*/true));
  Set("HEARTH_HDFS", "webhdfs");
  EXPECT_FALSE(takes_libhdfs("hdfs://nn:1/a"));
  EXPECT_THAT(Thrown([&] { takes_libhdfs("viewfs://nn/a"); }).message(), HasSubstr("libhdfs"));
  Set("HEARTH_HDFS", "both");
  EXPECT_EQ(Thrown([&] { takes_libhdfs("hdfs://nn:1/a"); }).code(), ErrorCode::kInvalidArgument);
}

TEST_F(OpenHdfsTest, SupportsFourSchemes) {
  for (const char* scheme : {"hdfs", "viewfs", "webhdfs", "swebhdfs"}) EXPECT_TRUE(IsHdfs(scheme));
  for (const char* scheme : {"", "file", "s3a", "HDFS", "hdfs2"}) EXPECT_FALSE(IsHdfs(scheme));
}

TEST_F(OpenHdfsTest, AnUnknownHostIsFoundAtTheFirstAccessOnly) {
  EXPECT_NO_THROW(OpenUri("hdfs://no-such-host.invalid:9/a"));
}

TEST_F(OpenHdfsTest, AUriWithoutAHostNeedsTheClustersConfiguration) {
  const Error missing = Thrown([] { OpenUri("hdfs:///a"); });
  EXPECT_EQ(missing.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(missing.message(), AllOf(HasSubstr("hdfs:///a"), HasSubstr("HADOOP_CONF_DIR")));
  Configure(
      "<configuration><property><name>fs.defaultFS</name><value>hdfs://nn:8020</value></property>"
      "</configuration>");
  EXPECT_NO_THROW(OpenUri("hdfs:///a"));
  EXPECT_EQ(CodeOf([] { OpenUri("webhdfs:///a"); }), ErrorCode::kInvalidArgument)
      << "the default has another scheme";
}

// HEARTH_WEBHDFS contains the address of HttpFS, with or without http://, and needs no Hadoop
// configuration.
TEST_F(OpenHdfsTest, UsesTheAddressesAndTheUserOfTheEnvironment) {
  WebHdfsServer server;
  std::mutex mutex;
  std::string user;
  server.Intercept([&](const ServerRequest& request) {
    const std::lock_guard lock(mutex);
    user = request.query.contains("user.name") ? request.query.at("user.name") : "none";
    return std::nullopt;
  });
  Set("HADOOP_USER_NAME", "alice");
  const std::string address = server.address();
  for (const std::string& named : {address, address.substr(std::string("http://").size())}) {
    Set("HEARTH_WEBHDFS", named);
    const auto status = OpenUri("hdfs:///")->Stat("hdfs:///");
    ASSERT_TRUE(status.has_value());
    EXPECT_TRUE(status->is_folder);
    const std::lock_guard lock(mutex);
    EXPECT_EQ(user, "alice");
  }
  EXPECT_EQ(server.Requests().size(), 2U);
}

TEST_F(OpenHdfsTest, AnInvalidConfigurationFailsWebHdfsButNotLibHdfs) {
  Configure("no XML");
  EXPECT_THAT(Thrown([] { OpenUri("hdfs://nn:1/a"); }).message(), HasSubstr("core-site.xml"));
  Set("HEARTH_LIBHDFS", HEARTH_STAND_IN_LIBHDFS);
  SetClassPath({"hadoop-common-3.5.0.jar", "commons-lang3-3.17.0.jar"});
  EXPECT_NE(dynamic_cast<LibHdfsFiles*>(OpenUri("hdfs://nn:1/a").get()), nullptr);
}

}  // namespace
}  // namespace hearth::storage
