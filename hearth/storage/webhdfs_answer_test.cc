#include "hearth/storage/webhdfs_answer.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/error_testing.h"

namespace hearth::storage {
namespace {

using testing::HasSubstr;

std::string Remote(const std::string& exception, const std::string& message) {
  return R"({"RemoteException": {"exception": ")" + exception + R"(", "message": ")" + message +
         "\"}}";
}

TEST(ReadRefusal, TellsWhetherAnotherAttemptMayHelp) {
  const auto remedy_of = [](const std::string& exception, const std::string& message) {
    return ReadRefusal(403, Remote(exception, message)).remedy;
  };
  EXPECT_EQ(remedy_of("FileNotFoundException", "/a"), Remedy::kNone);
  EXPECT_EQ(remedy_of("SafeModeException", "on"), Remedy::kRepeat);
  EXPECT_EQ(remedy_of("StandbyException", "standby"), Remedy::kOther);
  EXPECT_EQ(remedy_of("InvalidToken", "expired"), Remedy::kNewToken);
  EXPECT_EQ(remedy_of("IOException", "no DataNode has space"), Remedy::kRepeat);
  EXPECT_EQ(remedy_of("SomeException", "unknown"), Remedy::kNone);
}

// HttpFS and some DataNodes report the cause inside a general exception.
TEST(ReadRefusal, FindsTheCauseThatAServerWrapped) {
  const Refusal wrapped = ReadRefusal(
      403, Remote("SecurityException", "org.apache.hadoop.ipc.StandbyException: standby"));
  EXPECT_EQ(wrapped.remedy, Remedy::kOther);
  // Not a wrapped cause: the words are in a path.
  const Refusal denied = ReadRefusal(
      403, Remote("AccessControlException", "Permission denied: /logs/StandbyException"));
  EXPECT_EQ(denied.code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(denied.remedy, Remedy::kNone);
}

TEST(ReadRefusal, FallsBackToTheStatusOfAServerThatIsNotWebHdfs) {
  EXPECT_EQ(ReadRefusal(503, "<html>").remedy, Remedy::kRepeat);
  EXPECT_EQ(ReadRefusal(401, "").code, ErrorCode::kPermissionDenied);
  const Refusal other = ReadRefusal(404, R"({"RemoteException": 7})");
  EXPECT_EQ(other.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(other.text, HasSubstr("HTTP 404"));
}

TEST(ReadStatusTest, ReadsAFileAndAFolder) {
  const FileStatus file = ReadStatus(
      R"({"FileStatus": {"type": "FILE", "length": 7, "modificationTime": 5, "fileId": 9}})",
      "hdfs://nn/a");
  EXPECT_EQ(file.uri, "hdfs://nn/a");
  EXPECT_EQ(file.size, 7u);
  EXPECT_FALSE(file.is_folder);
  EXPECT_EQ(file.modified_ms, 5);
  // Without a file id, as from HttpFS; the length of a folder means nothing.
  const FileStatus folder =
      ReadStatus(R"({"FileStatus": {"type": "DIRECTORY", "length": 7, "modificationTime": 5}})",
                 "hdfs://nn/f");
  EXPECT_TRUE(folder.is_folder);
  EXPECT_EQ(folder.size, 0u);
}

TEST(ReadBooleanTest, AcceptsAnEmptyBodyAndRefusesOtherValues) {
  EXPECT_EQ(ReadBoolean(" \r\n"), std::nullopt);
  EXPECT_EQ(ReadBoolean(R"({"boolean": true})"), true);
  for (const char* body : {R"({"boolean": "true"})", R"({"boolean": 1})", "{}", "true"}) {
    EXPECT_EQ(CodeOf([&] { ReadBoolean(body); }), ErrorCode::kDataLoss) << body;
  }
}

TEST(OneLine, RemovesControlCharactersAndLaterLines) {
  EXPECT_EQ(OneLine("a\tb\x1b[31m\x7f\nnext"), "a b [31m ");
}

TEST(OneLine, TruncatesBetweenCharacters) {
  const std::string text = OneLine(std::string(399, 'a') + "\xc3\xa4 and more");
  EXPECT_EQ(text, std::string(399, 'a'));
}

TEST(ReadListing, RejectsNamesWithPaths) {
  for (const char* name : {"../etc", "a/b", "..", "."}) {
    const std::string body =
        std::string(R"({"FileStatuses": {"FileStatus": [{"type": "FILE", "length": 1,
        "modificationTime": 1, "pathSuffix": ")") +
        name + "\"}]}}";
    EXPECT_EQ(Thrown([&] { ReadListing(body, "hdfs://nn/f"); }).code(), ErrorCode::kDataLoss);
  }
}

TEST(ReadListing, AFileIsNotAFolder) {
  const Listing listing = ReadListing(
      R"({"FileStatuses": {"FileStatus": [{"type": "FILE", "length": 1, "modificationTime": 1,
          "pathSuffix": ""}]}})",
      "hdfs://nn/a");
  EXPECT_FALSE(listing.is_folder);
}

}  // namespace
}  // namespace hearth::storage
