#include "hearth/storage/libhdfs.h"

#include <gmock/gmock.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hearth/base/error.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/storage/hdfs.h"
#include "hearth/storage/uri.h"
#include "hearth/storage/webhdfs.h"

namespace hearth::storage {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A modified environment; restored at the end.
class LibHdfsTest : public testing::Test {
 protected:
  LibHdfsTest() {
    std::string name = (fs::temp_directory_path() / "hearth_libhdfs_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    for (const char* variable : kVariables) {
      if (const char* value = getenv(variable)) before_[variable] = value;
      unsetenv(variable);
    }
  }
  ~LibHdfsTest() override {
    for (const char* variable : kVariables) unsetenv(variable);
    for (const auto& [variable, value] : before_) setenv(variable.c_str(), value.c_str(), 1);
    fs::remove_all(folder_);
  }

  void Set(const char* variable, const std::string& value) { setenv(variable, value.c_str(), 1); }
  void SetClassPath(const std::vector<std::string>& jars) {
    fs::create_directories(folder_ / "jars");
    for (const std::string& jar : jars) std::ofstream(folder_ / "jars" / jar) << "x";
    Set("CLASSPATH", (folder_ / "conf").string() + ":" + (folder_ / "jars").string() + "/*");
  }

  static constexpr const char* kVariables[] = {
      "HEARTH_HDFS",       "HEARTH_LIBHDFS",  "CLASSPATH",     "HADOOP_HOME",
      "ARROW_LIBHDFS_DIR", "HADOOP_CONF_DIR", "HEARTH_WEBHDFS"};
  fs::path folder_;
  std::map<std::string, std::string> before_;
};

TEST_F(LibHdfsTest, IsFoundInAHadoopInstallation) {
  EXPECT_EQ(FindLibHdfs(), "");
  fs::create_directories(folder_ / "lib/native");
  std::ofstream(folder_ / "lib/native/libhdfs.so") << "x";
  Set("HADOOP_HOME", folder_);
  EXPECT_EQ(FindLibHdfs(), folder_ / "lib/native/libhdfs.so");
  Set("ARROW_LIBHDFS_DIR", folder_ / "lib/native");
  EXPECT_EQ(FindLibHdfs(), folder_ / "lib/native/libhdfs.so");
  Set("HEARTH_LIBHDFS", HEARTH_STAND_IN_LIBHDFS);
  EXPECT_EQ(FindLibHdfs(), HEARTH_STAND_IN_LIBHDFS);
}

TEST_F(LibHdfsTest, RejectsAVariableWithoutAFile) {
  fs::create_directories(folder_ / "lib/native");
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

TEST_F(LibHdfsTest, ChecksTheClassPathBeforeStartingAJvm) {
  EXPECT_EQ(MissingOnClassPath(), "Hadoop's jars");
  SetClassPath({"hadoop-client-api-3.5.0.jar", "hadoop-client-runtime-3.5.0.jar"});
  EXPECT_EQ(MissingOnClassPath(), "commons-lang3");
  Set("HEARTH_LIBHDFS", HEARTH_STAND_IN_LIBHDFS);
  LibHdfsFiles files("hdfs://nn:1", "user alice");
  const Error error = Thrown([&] { files.Stat("hdfs://nn:1/a"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("commons-lang3"), HasSubstr("classpath --glob")));
  SetClassPath({"commons-lang3-3.17.0.jar"});
  EXPECT_EQ(MissingOnClassPath(), "");
}

TEST_F(LibHdfsTest, IsUsedIfFoundWithAClassPath) {
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

TEST_F(LibHdfsTest, ErrorNamesTheSettingsIfNotFound) {
  Set("HADOOP_HOME", "/nowhere");
  const Error error = Thrown([] { LocateLibHdfs(); });
  EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("HADOOP_HOME='/nowhere'"), HasSubstr("libhdfs.so"),
                                     HasSubstr("HEARTH_HDFS=webhdfs")));
}

TEST_F(LibHdfsTest, KeepsSignalHandlersAndFailsInAForkedChild) {
  Set("HEARTH_LIBHDFS", HEARTH_STAND_IN_LIBHDFS);
  Set("STAND_IN_LIBHDFS_FOLDER", folder_);
  SetClassPath({"hadoop-common-3.5.0.jar", "commons-lang3-3.17.0.jar"});
  const auto before = std::signal(SIGINT, [](int) {});
  const auto mine = std::signal(SIGINT, [](int) {});
  std::signal(SIGINT, mine);
  LibHdfsFiles files("hdfs://nn:1", "user alice");
  files.MakeFolders("hdfs://nn:1/a");  // the fake library replaces the SIGINT handler like a JVM
  EXPECT_EQ(std::signal(SIGINT, before), mine);
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    try {
      files.Stat("hdfs://nn:1/a");
    } catch (const Error& error) {
      code = error.message().find("spawn") == std::string::npos ? 2 : 0;
    }
    _exit(code);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(LibHdfsTest, ReportsTheJavaExceptionInOneLine) {
  Set("HEARTH_LIBHDFS", HEARTH_STAND_IN_LIBHDFS);
  Set("STAND_IN_LIBHDFS_FOLDER", folder_);
  SetClassPath({"hadoop-common-3.5.0.jar", "commons-lang3-3.17.0.jar"});
  LibHdfsFiles files("hdfs://nn:1", "user alice");
  Error error = Thrown([&] { files.Create("hdfs://nn:1/forbidden/a"); });
  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("hdfs://nn:1/forbidden/"), HasSubstr("user alice"),
                                     HasSubstr("permission denied"), Not(HasSubstr("X"))));
  error = Thrown([&] { files.Create("hdfs://nn:1/unknown to Kerberos"); });
  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(error.message(), HasSubstr("kinit"));
  error = Thrown([&] { files.Create("hdfs://nn:1/too late"); });
  EXPECT_THAT(error.message(), HasSubstr("kinit"));
  error = Thrown([&] { files.Create("hdfs://nn:1/strange"); });
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("NoMatchingRule: No rules applied to alice"), Not(HasSubstr("255"))));
}

}  // namespace
}  // namespace hearth::storage
