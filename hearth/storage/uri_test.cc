#include "hearth/storage/uri.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::storage {
namespace {

TEST(LocalPath, AcceptsPlainPathsAndFileUris) {
  EXPECT_EQ(LocalPath("models/a.caffemodel"), "models/a.caffemodel");
  EXPECT_EQ(LocalPath("file:/tmp/a"), "/tmp/a");
  EXPECT_EQ(LocalPath("file:///tmp/a"), "/tmp/a");
  EXPECT_EQ(LocalPath("file://localhost/tmp/a"), "/tmp/a");
  EXPECT_EQ(LocalPath("file:a/b"), "a/b");
  EXPECT_EQ(LocalPath("./odd:name"), "./odd:name");
}

TEST(LocalPath, RejectsOtherSchemes) {
  try {
    LocalPath("gopher://namenode/a");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
    EXPECT_NE(error.message().find("gopher:"), std::string::npos) << error.message();
  }
}

TEST(LocalPathOf, IsNulloptForRemoteUris) {
  EXPECT_EQ(LocalPathOf("file:/data/a"), "/data/a");
  EXPECT_EQ(LocalPathOf("file:///data/a"), "/data/a");
  EXPECT_EQ(LocalPathOf("a:b"), "a:b");
  EXPECT_EQ(LocalPathOf("hdfs://namenode/a"), std::nullopt);
}

TEST(LocalPath, RejectsEmptyNamesAndRemoteHosts) {
  EXPECT_THROW(LocalPath(""), Error);
  EXPECT_THROW(LocalPath("file:"), Error);
  EXPECT_THROW(LocalPath("file://host/a"), Error);
}

}  // namespace
}  // namespace hearth::storage
