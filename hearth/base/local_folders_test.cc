#include "hearth/base/local_folders.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Removes the environment variables for the duration of a test, then restores them.
class LocalFoldersTest : public ::testing::Test {
 protected:
  LocalFoldersTest() {
    for (const char* name : kVariables) {
      const char* const value = std::getenv(name);
      before_.emplace_back(value == nullptr ? "" : value);
      unsetenv(name);
    }
  }
  ~LocalFoldersTest() override {
    for (size_t i = 0; i < before_.size(); ++i) {
      unsetenv(kVariables[i]);
      if (!before_[i].empty()) setenv(kVariables[i], before_[i].c_str(), 1);
    }
  }

 private:
  static constexpr const char* kVariables[] = {"SPARK_EXECUTOR_DIRS", "LOCAL_DIRS",
                                               "SPARK_LOCAL_DIRS"};
  std::vector<std::string> before_;
};

TEST_F(LocalFoldersTest, AreTheExecutorsOwnOnesFirst) {
  EXPECT_THAT(LocalFolders(), IsEmpty());
  setenv("SPARK_LOCAL_DIRS", "/a,/b", 1);
  EXPECT_THAT(LocalFolders(), ElementsAre("/a", "/b"));
  setenv("LOCAL_DIRS", "/yarn", 1);
  EXPECT_THAT(LocalFolders(), ElementsAre("/yarn"));
  setenv("SPARK_EXECUTOR_DIRS", "/x:/y,z", 1);
  EXPECT_THAT(LocalFolders(), ElementsAre("/x", "/y,z")) << "separated by colons";
}

TEST_F(LocalFoldersTest, EmptyPartsAreSkipped) {
  setenv("SPARK_EXECUTOR_DIRS", ":", 1);
  setenv("LOCAL_DIRS", ",/a,,/b,", 1);
  EXPECT_THAT(LocalFolders(), ElementsAre("/a", "/b"));
}

}  // namespace
}  // namespace hearth
