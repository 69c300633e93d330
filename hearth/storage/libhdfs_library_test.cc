#include "hearth/storage/libhdfs_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "hearth/base/testing/error_testing.h"
#include "hearth/storage/testing/hdfs_environment_testing.h"

namespace hearth::storage {
namespace {

using testing::AllOf;
using testing::ExitedWithCode;
using testing::HasSubstr;

class LibHdfsLibraryTest : public HdfsEnvironmentTest {
 protected:
  // Runs the statement of a death test in a new process of this program, because the library is
  // loaded only once per process and another test may have loaded it in this one.
  LibHdfsLibraryTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // The path of a library that is not libhdfs.
  static std::string OtherLibrary() {
    Dl_info info = {};
    ::dladdr(reinterpret_cast<void*>(&::strlen), &info);
    return info.dli_fname;
  }
  // Called in the child process of a death test: writes the error of LibHdfs() to stderr and exits,
  // with 0 for kUnimplemented.
  [[noreturn]] void ExitWithLibHdfsError() {
    const Error error = Thrown([] { LibHdfs(); });
    std::fprintf(stderr, "%s\n", error.message().c_str());
    std::filesystem::remove_all(folder_);
    ::_exit(error.code() == ErrorCode::kUnimplemented ? 0 : 1);
  }
};

TEST_F(LibHdfsLibraryTest, IsFoundInAHadoopInstallation) {
  EXPECT_EQ(FindLibHdfs(), "");
  std::filesystem::create_directories(folder_ / "lib/native");
  std::ofstream(folder_ / "lib/native/libhdfs.so") << "x";
  Set("HADOOP_HOME", folder_);
  EXPECT_EQ(FindLibHdfs(), folder_ / "lib/native/libhdfs.so");
  Set("ARROW_LIBHDFS_DIR", folder_ / "lib/native");
  EXPECT_EQ(FindLibHdfs(), folder_ / "lib/native/libhdfs.so");
  Set("HEARTH_LIBHDFS", HEARTH_STAND_IN_LIBHDFS);
  EXPECT_EQ(FindLibHdfs(), HEARTH_STAND_IN_LIBHDFS);
}

TEST_F(LibHdfsLibraryTest, ErrorNamesTheSettingsIfNotFound) {
  Set("HADOOP_HOME", "/nowhere");
  const Error error = Thrown([] { LocateLibHdfs(); });
  EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("HADOOP_HOME='/nowhere'"), HasSubstr("libhdfs.so"),
                                     HasSubstr("HEARTH_HDFS=webhdfs")));
}

TEST_F(LibHdfsLibraryTest, FoldersWithoutTheFileAreSkipped) {
  // A folder with the library's name.
  std::filesystem::create_directories(folder_ / "lib/native/libhdfs.so");
  std::ofstream(folder_ / "libhdfs.so") << "x";
  Set("ARROW_LIBHDFS_DIR", "/nowhere");
  Set("HADOOP_HOME", folder_);
  EXPECT_EQ(FindLibHdfs(), folder_ / "libhdfs.so");
}

TEST_F(LibHdfsLibraryTest, ClassPathMayNameJarsOrFolders) {
  std::ofstream(folder_ / "hadoop-common-3.5.0.jar") << "x";
  std::ofstream(folder_ / "commons-lang3-3.17.0.jar.bak") << "x";
  Set("CLASSPATH", ":" + (folder_ / "hadoop-common-3.5.0.jar").string());
  EXPECT_EQ(MissingOnClassPath(), "commons-lang3");
  Set("CLASSPATH", folder_.string() + "/*");
  EXPECT_EQ(MissingOnClassPath(), "commons-lang3") << "a .bak file is not a jar";
  std::ofstream(folder_ / "commons-lang3-3.17.0.jar") << "x";
  EXPECT_EQ(MissingOnClassPath(), "");
  Set("CLASSPATH", folder_.string());
  EXPECT_EQ(MissingOnClassPath(), "Hadoop's jars") << "the JVM reads no jars of a folder without *";
  Set("CLASSPATH", (folder_ / "hadoop-common-9.9.9.jar").string() + ":/nowhere/*");
  EXPECT_EQ(MissingOnClassPath(), "Hadoop's jars") << "the file does not exist";
}

TEST_F(LibHdfsLibraryTest, AFileThatIsNoLibraryIsReportedWithTheSettings) {
  Set("JAVA_HOME", "/no/java");
  EXPECT_EXIT(
      {
        std::ofstream(folder_ / "libhdfs.so") << "text";
        Set("HEARTH_LIBHDFS", folder_ / "libhdfs.so");
        ExitWithLibHdfsError();
      },
      ExitedWithCode(0),
      AllOf(HasSubstr("cannot load /"), HasSubstr("/libhdfs.so: "), HasSubstr("('/no/java' now)"),
            HasSubstr("HEARTH_HDFS=webhdfs")));
}

TEST_F(LibHdfsLibraryTest, AMissingLibraryIsReportedWithTheSettings) {
  EXPECT_EXIT(ExitWithLibHdfsError(), ExitedWithCode(0),
              AllOf(HasSubstr("libhdfs.so is neither in ARROW_LIBHDFS_DIR"),
                    HasSubstr("HEARTH_HDFS=webhdfs")));
}

TEST_F(LibHdfsLibraryTest, ALibraryWithoutAFunctionIsReportedWithItsName) {
  EXPECT_EXIT(
      {
        Set("HEARTH_LIBHDFS", OtherLibrary());
        ExitWithLibHdfsError();
      },
      ExitedWithCode(0), HasSubstr("lacks hdfsNewBuilder; install Hadoop 2.2 or later"));
}

// A failure is not cached, so the user may set the variable in a notebook and try again.
TEST_F(LibHdfsLibraryTest, CanBeLoadedAfterAFailure) {
  EXPECT_EXIT(
      {
        const bool failed = CodeOf([] { LibHdfs(); }) == ErrorCode::kUnimplemented;
        Set("HEARTH_LIBHDFS", HEARTH_STAND_IN_LIBHDFS);
        const bool loaded = LibHdfs().new_builder != nullptr && &LibHdfs() == &LibHdfs();
        std::filesystem::remove_all(folder_);
        ::_exit(failed && loaded ? 0 : 1);
      },
      ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hearth::storage
