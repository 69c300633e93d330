#include "hearth/storage/libhdfs.h"

#include <gmock/gmock.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "hearth/base/error.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/storage/testing/hdfs_environment_testing.h"

namespace hearth::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class LibHdfsTest : public HdfsEnvironmentTest {};

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

TEST_F(LibHdfsTest, KeepsSignalHandlersAndFailsInAForkedChild) {
  Set("HEARTH_LIBHDFS", HEARTH_STAND_IN_LIBHDFS);
  Set("STAND_IN_LIBHDFS_FOLDER", folder_);
  SetClassPath({"hadoop-common-3.5.0.jar", "commons-lang3-3.17.0.jar"});
  const auto before = std::signal(SIGINT, [](int) {});
  const auto mine = std::signal(SIGINT, [](int) {});
  std::signal(SIGINT, mine);
  LibHdfsFiles files("hdfs://nn:1", "user alice");
  files.MakeFolders("hdfs://nn:1/a");  // like a JVM, the fake library replaces the SIGINT handler
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
