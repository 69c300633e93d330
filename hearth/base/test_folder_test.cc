#include "hearth/base/testing/test_folder_testing.h"

#include <sys/wait.h>

#include <fstream>
#include <optional>

namespace hearth {
namespace {

TEST(ProcessFolder, EndsWithItsContent) {
  std::string path;
  {
    const ProcessFolder folder;
    path = folder.path();
    std::filesystem::create_directories(path + "a");
    std::ofstream(path + "a/b") << "text";
    ASSERT_TRUE(std::filesystem::exists(path + "a/b"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ProcessFolder, BelongsToOneOwner) {
  const ProcessFolder one, other;
  EXPECT_NE(one.path(), other.path());
  EXPECT_EQ(TestFolder(), TestFolder());
}

TEST(ProcessFolder, OutlivesAForkedChild) {
  std::optional<ProcessFolder> folder(std::in_place);
  const pid_t child = ::fork();
  if (child == 0) {
    folder.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::exists(folder->path()));
}

}  // namespace
}  // namespace hearth
