#include "hearth/storage/temporary_name.h"

#include <gmock/gmock.h>

#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

TEST(TemporaryForTest, IsHiddenUniqueAndInTheSameFolder) {
  for (const std::string uri : {"/data/model.bin", "hdfs://nn/data/model.bin"}) {
    const std::string name = TemporaryFor(uri);
    EXPECT_EQ(FolderOf(name), FolderOf(uri));
    EXPECT_THAT(NameOf(name), StartsWith(".model.bin."));
    EXPECT_THAT(name, EndsWith(".tmp"));
    EXPECT_NE(name, TemporaryFor(uri));
  }
}

// File systems allow 255 bytes. A character of several bytes must not be cut.
TEST(TemporaryForTest, ShortensALongNameBetweenCharacters) {
  std::string name(199, 'n');
  for (int i = 0; i < 20; ++i) name += "\xc3\xa4";
  const std::string temporary = NameOf(TemporaryFor("/data/" + name));
  EXPECT_LE(temporary.size(), 255u);
  EXPECT_THAT(temporary, StartsWith("." + std::string(199, 'n') + "."));
}

}  // namespace
}  // namespace hearth::storage
