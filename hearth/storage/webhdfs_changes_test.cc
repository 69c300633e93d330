// Tests writes, appends, renames and deletes that fail or whose response is lost.
#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/storage/testing/webhdfs_testing.h"

namespace hearth::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using WebHdfsChanges = WebHdfsTest;

TEST_F(WebHdfsChanges, WritesAHiddenFileInTwoStepsThenRenames) {
  Write(files_, "hdfs://nn/a/b", "bytes");
  const auto requests = server_.Requests();
  ASSERT_EQ(requests.size(), 7u);
  EXPECT_EQ(requests[0], "GET GETFILESTATUS /a/b");
  EXPECT_THAT(requests[1], testing::MatchesRegex("PUT CREATE /a/\\.b\\.[0-9a-f]+\\.tmp"));
  EXPECT_EQ(requests[2], requests[1] + " at data");
  EXPECT_EQ(requests[3], requests[1]);
  EXPECT_EQ(requests[4], requests[1] + " at data");
  EXPECT_THAT(requests[6], testing::MatchesRegex("PUT RENAME /a/\\.b\\..*tmp"));
  EXPECT_THAT(server_.Queries(), AllOf(HasSubstr("user.name=alice"), Not(HasSubstr("delegation"))));
}

TEST_F(WebHdfsChanges, RestartsTheUploadWhenADataNodeFails) {
  server_.Intercept([left = std::make_shared<std::atomic<int>>(2)](
                        const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    const bool upload = request.at_data_node && !request.body.empty();
    if (!upload || left->fetch_sub(1) <= 0) return std::nullopt;
    return "";
  });
  const std::string bytes(3'000'000, 'x');
  Write(files_, "hdfs://nn/a", bytes);
  EXPECT_EQ(files_.ReadAll("hdfs://nn/a"), bytes);
  EXPECT_THAT(server_.Queries(), HasSubstr("excludedatanodes=127.0.0.1:"))
      << "the NameNode is to name another one";
}

TEST_F(WebHdfsChanges, ARenameWithALostResponseSucceeds) {
  Write(files_, "hdfs://nn/a", "bytes");
  // The first request is executed, but the connection is closed. The second one finds no file to
  // rename.
  server_.Intercept([this, first = std::make_shared<std::atomic<bool>>(true)](
                        const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    if (request.operation() != "RENAME" || !first->exchange(false)) return std::nullopt;
    WebHdfs(Options()).Rename("hdfs://nn/a", "hdfs://nn/b");
    return "";
  });
  files_.Rename("hdfs://nn/a", "hdfs://nn/b");
  EXPECT_EQ(files_.ReadAll("hdfs://nn/b"), "bytes");
  EXPECT_EQ(Thrown([&] { files_.Rename("hdfs://nn/a", "hdfs://nn/b"); }).code(),
            ErrorCode::kNotFound);
}

TEST_F(WebHdfsChanges, KeepsTheOldFileIfTheNewOneCannotBeRenamed) {
  server_.ActAsHttpFs();
  Write(files_, "hdfs://nn/a", "old");
  WebHdfsOptions options = Options();
  options.repeat_seconds = 0.2;
  WebHdfs files(options);
  // The server renames the old file but then fails to rename the new one.
  server_.Intercept([asked = std::make_shared<std::atomic<int>>(0)](
                        const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    const bool replaces = request.operation() == "RENAME" && request.path.starts_with("/.a.") &&
                          request.query.at("destination") == "/a";
    if (!replaces || asked->fetch_add(1) == 0 || asked->load() > 6) return std::nullopt;
    return WebHdfsServer::Json(503, "");
  });
  EXPECT_THROW(Write(files, "hdfs://nn/a", "new"), Error);
  server_.Intercept({});
  std::string kept;
  for (const FileStatus& each : files_.List("hdfs://nn/")) kept += files_.ReadAll(each.uri) + " ";
  EXPECT_THAT(kept, HasSubstr("old"));
}

TEST_F(WebHdfsChanges, AppendsOnceIfTheResponseIsLost) {
  files_.Append("hdfs://nn/log", "one ");
  server_.Intercept([this](const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    if (request.operation() != "APPEND" || !request.at_data_node) return std::nullopt;
    server_.Intercept({});
    WebHdfs(Options()).Append("hdfs://nn/log", request.body);  // executes the append
    return "";
  });
  files_.Append("hdfs://nn/log", "two");
  EXPECT_EQ(files_.ReadAll("hdfs://nn/log"), "one two");
  server_.Intercept([](const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    if (request.operation() != "APPEND" || !request.at_data_node) return std::nullopt;
    return "";
  });
  EXPECT_THAT(Thrown([&] { files_.Append("hdfs://nn/log", "three"); }).message(),
              HasSubstr("it is unknown whether its bytes were appended"));
  Refuse("APPEND", 1, WebHdfsServer::Exception(403, "SafeModeException", "in safe mode"));
  files_.Append("hdfs://nn/log", "!");
  EXPECT_EQ(files_.ReadAll("hdfs://nn/log"), "one two!") << "what was not sent may be sent again";
}

TEST_F(WebHdfsChanges, AppendsToAFileCreatedConcurrently) {
  server_.Intercept([this](const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    if (request.operation() != "CREATE") return std::nullopt;
    server_.Intercept({});
    Write(files_, "hdfs://nn/log", "theirs ");
    return std::nullopt;
  });
  files_.Append("hdfs://nn/log", "ours");
  EXPECT_EQ(files_.ReadAll("hdfs://nn/log"), "theirs ours");
  EXPECT_EQ(files_.List("hdfs://nn/").size(), 1u) << "nothing is left behind";
}

TEST_F(WebHdfsChanges, ADeletionWithALostResponseSucceeds) {
  Write(files_, "hdfs://nn/a", "bytes");
  server_.Intercept([this](const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    if (request.operation() != "DELETE") return std::nullopt;
    server_.Intercept({});
    WebHdfs(Options()).Delete("hdfs://nn/a", false);
    return "";
  });
  EXPECT_TRUE(files_.Delete("hdfs://nn/a", false));
}

TEST_F(WebHdfsChanges, CreateReportsMissingPermissions) {
  Refuse("CREATE", 1, WebHdfsServer::Exception(403, "AccessControlException", "no"));
  EXPECT_EQ(Thrown([&] { files_.Create("hdfs://nn/a"); }).code(), ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace hearth::storage
