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

TEST(ReadRefusal, ReturnsWhetherARetryMaySucceed) {
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

// HttpFS and some DataNodes report the cause in the message of a more general exception.
TEST(ReadRefusal, FindsTheCauseThatAServerWrapped) {
  const Refusal wrapped = ReadRefusal(
      403, Remote("SecurityException", "org.apache.hadoop.ipc.StandbyException: standby"));
  EXPECT_EQ(wrapped.remedy, Remedy::kOther);
  // In a path, the name of an exception's class is not a wrapped cause.
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
  // HttpFS sends no file id. The length of a folder has no meaning.
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

TEST(ReadRefusal, EachKnownExceptionHasItsCode) {
  const std::vector<std::pair<const char*, ErrorCode>> known = {
      {"FileNotFoundException", ErrorCode::kNotFound},
      {"AccessControlException", ErrorCode::kPermissionDenied},
      {"NSQuotaExceededException", ErrorCode::kResourceExhausted},
      {"DSQuotaExceededException", ErrorCode::kResourceExhausted},
      {"SafeModeException", ErrorCode::kUnavailable},
      {"FileAlreadyExistsException", ErrorCode::kInvalidArgument},
      {"ParentNotDirectoryException", ErrorCode::kInvalidArgument},
      {"PathIsNotEmptyDirectoryException", ErrorCode::kInvalidArgument},
      {"IllegalArgumentException", ErrorCode::kInvalidArgument},
      {"OtherException", ErrorCode::kInternal}};
  for (const auto& [exception, code] : known) {
    const Refusal refusal = ReadRefusal(403, Remote(exception, "reason\\nsecond line"));
    EXPECT_EQ(refusal.code, code) << exception;
    EXPECT_THAT(refusal.text, HasSubstr("reason"));
    EXPECT_EQ(refusal.text.find('\n'), std::string::npos) << "more than one line";
  }
  EXPECT_FALSE(ReadException("OtherException", "reason"));
  EXPECT_EQ(ReadException("FileNotFoundException", "/a")->code, ErrorCode::kNotFound);
}

TEST(ReadRefusal, TextInAnIOExceptionIsRecognized) {
  const auto refused = [](const std::string& message) {
    return ReadRefusal(403, Remote("IOException", message));
  };
  EXPECT_EQ(refused("Name node is in safe mode.").remedy, Remedy::kRepeat);
  EXPECT_EQ(refused("Offset=7 out of the range [0, 5]").code, ErrorCode::kDataLoss);
  EXPECT_EQ(refused("/a is non empty").code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused("token (x) can't be found in cache").remedy, Remedy::kNewToken);
}

TEST(ReadRefusal, AServerThatFailsMayBeTriedAgain) {
  for (const long status : {429L, 500L, 502L, 504L, 599L}) {
    const Refusal refusal = ReadRefusal(status, "");
    EXPECT_EQ(refusal.code, ErrorCode::kUnavailable) << status;
    EXPECT_EQ(refusal.remedy, Remedy::kRepeat);
    EXPECT_THAT(refusal.text, HasSubstr(std::to_string(status)));
  }
  EXPECT_EQ(ReadRefusal(500, Remote("OtherException", "x")).remedy, Remedy::kRepeat);
  for (const long status : {400L, 404L, 428L}) {
    EXPECT_EQ(ReadRefusal(status, "").remedy, Remedy::kNone) << status;
  }
}

TEST(ReadStatusTest, MissingAndInvalidFieldsAreDataLoss) {
  const auto code_of = [](const std::string& fields) {
    return CodeOf([&] { ReadStatus("{\"FileStatus\": {" + fields + "}}", "hdfs://nn/a"); });
  };
  for (const char* fields :
       {R"("length": 7, "modificationTime": 5)", R"("type": "FILE", "modificationTime": 5)",
        R"("type": "FILE", "length": 7)", R"("type": 7, "length": 7, "modificationTime": 5)",
        R"("type": "FILE", "length": -1, "modificationTime": 5)",
        R"("type": "FILE", "length": 1.5, "modificationTime": 5)",
        R"("type": "FILE", "length": "7", "modificationTime": 5)",
        R"("type": "FILE", "length": 9300000000000000000, "modificationTime": 5)",
        R"("type": "FILE", "length": 7, "modificationTime": 5, "fileId": -1)"}) {
    EXPECT_EQ(code_of(fields), ErrorCode::kDataLoss) << fields;
  }
  for (const char* body : {"", "[]", "{}", "{\"FileStatus\": 7}", "{\"FileStatus\": {", "null"}) {
    EXPECT_EQ(CodeOf([&] { ReadStatus(body, "hdfs://nn/a"); }), ErrorCode::kDataLoss) << body;
  }
}

TEST(ReadListing, ReadsPartsOfAFolder) {
  const auto part = [](const std::string& remaining) {
    return R"({"DirectoryListing": {"remainingEntries": )" + remaining +
           R"(, "partialListing": {"FileStatuses": {"FileStatus": [{"type": "FILE", "length": 1,
           "modificationTime": 1, "pathSuffix": "a b"}]}}}})";
  };
  const Listing more = ReadListing(part("1"), "hdfs://nn/f");
  EXPECT_TRUE(more.more);
  EXPECT_TRUE(more.is_folder);
  ASSERT_EQ(more.entries.size(), 1u);
  EXPECT_EQ(more.entries[0].uri, "hdfs://nn/f/a b");
  EXPECT_FALSE(ReadListing(part("0"), "hdfs://nn/f").more);
  for (const char* remaining : {"-1", "null", "\"1\""}) {
    EXPECT_EQ(CodeOf([&] { ReadListing(part(remaining), "hdfs://nn/f"); }), ErrorCode::kDataLoss);
  }
  const Listing empty = ReadListing(R"({"FileStatuses": {"FileStatus": []}})", "hdfs://nn/f");
  EXPECT_TRUE(empty.is_folder);
  EXPECT_TRUE(empty.entries.empty());
  EXPECT_EQ(CodeOf([] { ReadListing(R"({"FileStatuses": {"FileStatus": {}}})", "hdfs://nn/f"); }),
            ErrorCode::kDataLoss);
}

TEST(OneLine, KeepsFourHundredBytes) {
  EXPECT_EQ(OneLine(std::string(400, 'a')), std::string(400, 'a'));
  EXPECT_EQ(OneLine(std::string(401, 'a')), std::string(400, 'a'));
  EXPECT_EQ(OneLine(""), "");
  EXPECT_EQ(OneLine("\nsecond"), "");
}

}  // namespace
}  // namespace hearth::storage
