#include "hearth/storage/uri.h"

#include <gtest/gtest.h>

#include "hearth/base/testing/error_testing.h"

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

TEST(Scheme, BeginsWithALetterAndEndsAtTheFirstColon) {
  EXPECT_EQ(Scheme("hdfs://nn/a"), "hdfs");
  EXPECT_EQ(Scheme("a+b-c.9:x:y"), "a+b-c.9");
  for (const char* plain : {"", ":", ":a", "/a:b", "9p:a", "a_b:c", "a b:c", "plain"}) {
    EXPECT_EQ(Scheme(plain), "") << plain;
    EXPECT_TRUE(IsLocal(plain));
  }
  EXPECT_TRUE(IsLocal("file:a"));
  EXPECT_FALSE(IsLocal("s3a://bucket/a"));
}

TEST(ParseRemote, CleansThePath) {
  const RemoteUri uri = ParseRemote("hdfs://nn:8020//a/./b.c/...//d/");
  EXPECT_EQ(uri.scheme, "hdfs");
  EXPECT_EQ(uri.authority, "nn:8020");
  EXPECT_EQ(uri.path, "/a/b.c/.../d");
  EXPECT_EQ(uri.text(), "hdfs://nn:8020/a/b.c/.../d");
  EXPECT_EQ(ParseRemote("hdfs://nn").text(), "hdfs://nn/");
  EXPECT_EQ(ParseRemote("hdfs:///a").authority, "");
  EXPECT_EQ(ParseRemote("hdfs:///").path, "/");
}

TEST(ParseRemote, RejectsInvalidPaths) {
  for (const std::string& uri : {std::string("hdfs://nn/a/../b"), std::string("hdfs://nn/.."),
                                 std::string("hdfs://nn/a\0b", 13), std::string("/a"),
                                 std::string("hdfs:/a"), std::string("a")}) {
    const Error error = Thrown([&] { ParseRemote(uri); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << uri;
  }
  EXPECT_NE(Thrown([] { ParseRemote("a"); }).message().find("write hdfs:///path"),
            std::string::npos);
}

TEST(ParseRemote, RejectsUsersWithoutPrintingTheirPasswords) {
  const Error error = Thrown([] { ParseRemote("hdfs://user:secret@nn/a"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message().find("secret"), std::string::npos) << error.message();
  EXPECT_EQ(ParseRemote("hdfs://nn/a@b").path, "/a@b") << "in the path it is an ordinary character";
}

TEST(PathOnSame, RejectsAnotherSchemeOrHost) {
  EXPECT_EQ(PathOnSame("hdfs://nn/a", "hdfs://nn//b/c/"), "/b/c");
  for (const char* other : {"hdfs://nn:8020/a", "hdfs://other/a", "webhdfs://nn/a", "hdfs:///a"}) {
    const Error error = Thrown([&] { PathOnSame("hdfs://nn/a", other); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find(other), std::string::npos);
  }
}

TEST(WithoutPassword, MasksEachUserWithAPassword) {
  EXPECT_EQ(WithoutPassword("from hdfs://u:p@h/x to s3://a:b@c"),
            "from hdfs://***@h/x to s3://***@c");
  EXPECT_EQ(WithoutPassword("http://u:p@q@h/"), "http://***@h/") << "the password contains '@'";
  for (const char* text :
       {"", "://", "http://user@h/", "http://h/a:b@c", "http://h?a:b@c", "u:p@h"}) {
    EXPECT_EQ(WithoutPassword(text), text);
  }
}

TEST(FolderOf, SplitsAtTheLastSlashOfThePath) {
  struct Case {
    const char *uri, *folder, *name;
  };
  for (const Case& each : {Case{"a", "", "a"},
                           {"/a", "/", "a"},
                           {"/a/b", "/a", "b"},
                           {"a/b", "a", "b"},
                           {"/a/", "/a", ""},
                           {"/", "/", ""},
                           {"hdfs://nn/a", "hdfs://nn/", "a"},
                           {"hdfs://nn/a/b", "hdfs://nn/a", "b"},
                           {"hdfs://nn", "hdfs://nn", ""},
                           {"hdfs:///a", "hdfs:///", "a"}}) {
    EXPECT_EQ(FolderOf(each.uri), each.folder) << each.uri;
    EXPECT_EQ(NameOf(each.uri), each.name) << each.uri;
  }
  EXPECT_EQ(Join("", "a"), "a");
  EXPECT_EQ(Join("/", "a"), "/a");
  EXPECT_EQ(Join("hdfs://nn", "a"), "hdfs://nn/a");
  EXPECT_EQ(Join("hdfs://nn/", "a"), "hdfs://nn/a");
}

}  // namespace
}  // namespace hearth::storage
