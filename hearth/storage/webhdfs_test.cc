#include "hearth/storage/webhdfs.h"

#include <gmock/gmock.h>

#include <sys/wait.h>
#include <unistd.h>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/storage/testing/webhdfs_server_testing.h"

namespace hearth::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class WebHdfsTest : public testing::Test {
 protected:
  WebHdfsOptions Options() { return {.addresses = {server_.address()}, .user = "alice"}; }

  void Write(FileSystem& files, const std::string& uri, std::string_view bytes) {
    const auto file = files.Create(uri);
    file->Append(bytes);
    file->Commit();
  }
  // The first `count` requests of an operation get `reply`.
  void Refuse(const std::string& operation, int count, const WebHdfsServer::Reply& reply) {
    server_.Intercept([=, left = std::make_shared<std::atomic<int>>(count)](
                          const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
      if (request.operation() != operation || left->fetch_sub(1) <= 0) return std::nullopt;
      return reply;
    });
  }
  size_t Asked(const std::string& operation) const {
    size_t count = 0;
    for (const std::string& each : server_.Requests()) {
      if (each.find(" " + operation + " ") != std::string::npos) ++count;
    }
    return count;
  }

  WebHdfsServer server_;
  WebHdfs files_{Options()};
};

TEST_F(WebHdfsTest, WritesAHiddenFileInTwoStepsThenRenames) {
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

TEST_F(WebHdfsTest, RetriesTransientFailures) {
  Write(files_, "hdfs://nn/a", "bytes");
  for (const auto& reply : {
           WebHdfsServer::Exception(403, "RetriableException", "NameNode still not started"),
           WebHdfsServer::Exception(403, "SafeModeException", "Name node is in safe mode."),
           WebHdfsServer::Exception(403, "StandbyException", "not supported in state standby"),
           WebHdfsServer::Json(503, "busy"),
           WebHdfsServer::Reply(),  // closes the connection
           WebHdfsServer::Reply("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nby"),
       }) {
    Refuse("OPEN", 2, reply);
    EXPECT_EQ(files_.ReadAll("hdfs://nn/a"), "bytes") << reply;
  }
}

TEST_F(WebHdfsTest, RestartsTheUploadWhenADataNodeFails) {
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

TEST_F(WebHdfsTest, ARenameWithALostResponseSucceeds) {
  Write(files_, "hdfs://nn/a", "bytes");
  // The first request is executed, then the connection closes; the second finds nothing to rename.
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

TEST_F(WebHdfsTest, KeepsTheOldFileIfTheNewOneCannotBeRenamed) {
  server_.ActAsHttpFs();
  Write(files_, "hdfs://nn/a", "old");
  WebHdfsOptions options = Options();
  options.repeat_seconds = 0.2;
  WebHdfs files(options);
  // The old file is renamed, then the server stops renaming the new one.
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

TEST_F(WebHdfsTest, AppendsOnceIfTheResponseIsLost) {
  files_.Append("hdfs://nn/log", "one ");
  server_.Intercept([this](const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    if (request.operation() != "APPEND" || !request.at_data_node) return std::nullopt;
    server_.Intercept({});
    WebHdfs(Options()).Append("hdfs://nn/log", request.body);  // executed
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

TEST_F(WebHdfsTest, AppendsToAFileCreatedConcurrently) {
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

TEST_F(WebHdfsTest, DoesNotMixTheBytesOfTwoFiles) {
  Write(files_, "hdfs://nn/a", std::string(1'000'000, 'x'));
  const auto file = files_.Open("hdfs://nn/a");
  std::string piece(1000, '\0');
  EXPECT_EQ(file->ReadAt(0, piece.data(), piece.size()), 1000u);
  Write(files_, "hdfs://nn/a", std::string(1'000'000, 'y'));
  const Error error = Thrown([&] { file->ReadAt(900'000, piece.data(), piece.size()); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.message(), HasSubstr("replaced"));
}

TEST_F(WebHdfsTest, ReportsATruncatedFileAtOnce) {
  Write(files_, "hdfs://nn/a", std::string(1'000'000, 'x'));
  const auto file = files_.Open("hdfs://nn/a");
  Write(files_, "hdfs://nn/a", "short");
  char byte = 0;
  const Error error = Thrown([&] { file->ReadAt(900'000, &byte, 1); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.message(), HasSubstr("shorter"));
}

TEST_F(WebHdfsTest, ReadsALargeFileInBoundedRequests) {
  const std::string bytes(70'000'000, 'x');  // NOLINT(bugprone-string-constructor)
  Write(files_, "hdfs://nn/a", bytes);
  std::string read(bytes.size(), '\0');
  EXPECT_EQ(files_.Open("hdfs://nn/a")->ReadAt(0, read.data(), read.size()), bytes.size());
  EXPECT_TRUE(read == bytes);
  EXPECT_EQ(Asked("OPEN"), 2u * 3);
}

TEST_F(WebHdfsTest, ADeletionWithALostResponseSucceeds) {
  Write(files_, "hdfs://nn/a", "bytes");
  server_.Intercept([this](const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    if (request.operation() != "DELETE") return std::nullopt;
    server_.Intercept({});
    WebHdfs(Options()).Delete("hdfs://nn/a", false);
    return "";
  });
  EXPECT_TRUE(files_.Delete("hdfs://nn/a", false));
}

TEST_F(WebHdfsTest, AForkedChildUsesSeparateConnections) {
  Write(files_, "hdfs://nn/a", "parent's");
  Write(files_, "hdfs://nn/b", "child's.");
  EXPECT_EQ(files_.ReadAll("hdfs://nn/a"), "parent's");  // a connection is kept
  const size_t before = server_.Connections();
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    // On the parent's connection the child would consume the parent's response.
    std::string read;
    try {
      read = files_.ReadAll("hdfs://nn/b");
    } catch (const Error&) {
    }
    ssize_t ignored = write(pipes[1], read.data(), read.size());
    static_cast<void>(ignored);
    _exit(0);
  }
  close(pipes[1]);
  std::string from_child(20, '\0');
  from_child.resize(
      static_cast<size_t>(std::max<ssize_t>(0, read(pipes[0], from_child.data(), 20))));
  close(pipes[0]);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(from_child, "child's.");
  EXPECT_GT(server_.Connections(), before);
}

TEST_F(WebHdfsTest, RetriesForABoundedTime) {
  WebHdfsOptions options = Options();
  options.repeat_seconds = 1;
  WebHdfs files(options);
  Refuse("MKDIRS", 1 << 20, WebHdfsServer::Exception(403, "SafeModeException", "in safe mode"));
  const Error error = Thrown([&] { files.MakeFolders("hdfs://nn/a"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("hdfs://nn/a"), HasSubstr("alice"), HasSubstr(server_.address()),
                    HasSubstr("safe mode"), HasSubstr("dfsadmin")));
  EXPECT_GT(Asked("MKDIRS"), 1u);
}

TEST_F(WebHdfsTest, FirstContactFailsSoonIfNoServerListens) {
  WebHdfsOptions options = Options();
  options.addresses = {"http://127.0.0.1:1"};
  options.first_contact_seconds = 0.2;
  const Error error = Thrown([&] { WebHdfs(options).Stat("hdfs://nn/a"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("hdfs://nn/a")));
}

TEST_F(WebHdfsTest, UsesTheActiveNameNode) {
  WebHdfsServer standby;
  standby.Intercept([](const ServerRequest&) {
    return WebHdfsServer::Exception(403, "StandbyException", "not supported in state standby");
  });
  WebHdfsOptions options = Options();
  options.addresses = {"http://127.0.0.1:1", standby.address(), server_.address()};
  WebHdfs files(options);
  Write(files, "hdfs://service/a", "bytes");
  EXPECT_EQ(files.ReadAll("hdfs://service/a"), "bytes");
  EXPECT_EQ(standby.Requests().size(), 1u) << "the one that answered is asked first from then on";
}

TEST_F(WebHdfsTest, ErrorsSayWhatToDo) {
  const auto refused = [&](int status, const std::string& name, const std::string& message) {
    Refuse("GETFILESTATUS", 1, WebHdfsServer::Exception(status, name, message));
    return Thrown([&] { files_.Open("hdfs://nn/a"); });
  };
  Error error = refused(403, "AccessControlException", "Permission denied: user=alice\n\tat x.y.Z");
  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("cannot open hdfs://nn/a as user alice"),
                                     HasSubstr("HADOOP_USER_NAME"), Not(HasSubstr("x.y.Z"))));
  error = refused(403, "DSQuotaExceededException", "The DiskSpace quota of /a is exceeded");
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  error = refused(403, "InvalidToken", "token (owner=alice) is expired");
  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(error.message(), HasSubstr("expired"));
  // A NameNode with Kerberos wraps it.
  error = refused(403, "SecurityException",
                  "Failed to obtain user group information: org.apache.hadoop.security.token."
                  "SecretManager$InvalidToken: Token for real user: , can't be found in cache");
  EXPECT_THAT(error.message(), HasSubstr("max-lifetime"));
  // The same text in a path is not an error class.
  error = refused(404, "FileNotFoundException", "File /GSSException/$InvalidToken does not exist");
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  error =
      refused(403, "AccessControlException", "Permission denied: user=alice, inode=/GSSException");
  EXPECT_THAT(error.message(), HasSubstr("ask the owner"));
  Refuse("GETFILESTATUS", 1, WebHdfsServer::Json(401, "<html>"));
  error = Thrown([&] { files_.Open("hdfs://nn/a"); });
  EXPECT_THAT(error.message(), AllOf(HasSubstr("Kerberos"), HasSubstr("kinit")));
}

TEST_F(WebHdfsTest, CreateReportsMissingPermissions) {
  Refuse("CREATE", 1, WebHdfsServer::Exception(403, "AccessControlException", "no"));
  EXPECT_EQ(Thrown([&] { files_.Create("hdfs://nn/a"); }).code(), ErrorCode::kPermissionDenied);
}

TEST_F(WebHdfsTest, SendsItsTokenOnlyToTheServer) {
  WebHdfsOptions options = Options();
  options.token = "c2VjcmV0";
  options.repeat_seconds = 0.2;
  std::string logged;
  log::SetSink([&](const log::Record& record) { logged += record.line; });
  WebHdfs files(options);
  for (const auto& reply :
       {WebHdfsServer::Exception(403, "IOException", "delegation=c2VjcmV0 is not c2VjcmV0"),
        WebHdfsServer::Json(503, ""), WebHdfsServer::Reply()}) {
    Refuse("GETFILESTATUS", 1 << 20, reply);
    const std::string message = Thrown([&] { files.Open("hdfs://nn/a"); }).message();
    EXPECT_THAT(message, Not(HasSubstr("c2VjcmV0")));
  }
  log::SetSink({});
  EXPECT_THAT(logged, AllOf(HasSubstr("Retrying"), Not(HasSubstr("c2VjcmV0"))));
  EXPECT_THAT(server_.Queries(),
              AllOf(HasSubstr("delegation=c2VjcmV0"), Not(HasSubstr("user.name"))));
}

TEST_F(WebHdfsTest, UsesANewerTokenAfterExpiry) {
  server_.Intercept([](const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    if (request.query.at("delegation") == "bmV3") return std::nullopt;
    return WebHdfsServer::Exception(403, "InvalidToken", "token is expired");
  });
  WebHdfsOptions options = Options();
  options.token = "b2xk";
  int asked = 0;
  options.find_token = [&asked] { return std::string(++asked == 1 ? "b2xk" : "bmV3"); };
  WebHdfs files(options);
  const Error error = Thrown([&] { files.Stat("hdfs://nn/a"); });
  EXPECT_THAT(error.message(), HasSubstr("max-lifetime"));  // found the same token again
  Write(files, "hdfs://nn/a", "bytes");
  EXPECT_EQ(files.ReadAll("hdfs://nn/a"), "bytes");
  EXPECT_EQ(asked, 2);
}

TEST_F(WebHdfsTest, ReportsTheRejectionWithoutANewerToken) {
  WebHdfsOptions options = Options();
  options.token = "b2xk";
  options.find_token = []() -> std::string { Throw(ErrorCode::kDataLoss, "damaged"); };
  WebHdfs files(options);
  const auto reply = WebHdfsServer::Exception(403, "InvalidToken", "token is expired");
  Refuse("GETFILESTATUS", 1, reply);
  EXPECT_THAT(Thrown([&] { files.Stat("hdfs://nn/a"); }).message(), HasSubstr("max-lifetime"));
  // Newer tokens that are also rejected do not cause endless retries.
  int number = 0;
  options.find_token = [&number] { return std::to_string(++number); };
  WebHdfs others(options);
  Refuse("GETFILESTATUS", 1 << 20, reply);
  EXPECT_THAT(Thrown([&] { others.Stat("hdfs://nn/a"); }).message(), HasSubstr("max-lifetime"));
  EXPECT_EQ(number, 1);
}

TEST_F(WebHdfsTest, AuthenticatesByTicketIfTheClusterRequiresKerberos) {
  // There is no ticket here, and no user is sent; tests/hadoop/soak_kerberos.py has a ticket.
  WebHdfsOptions options = Options();
  options.kerberos = true;
  options.repeat_seconds = 0.2;
  const auto asks = [](const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    if (request.query.contains("delegation")) return std::nullopt;
    return "HTTP/1.1 401 X\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n";
  };
  server_.Intercept(asks);
  const Error error = Thrown([&] { WebHdfs(options).Open("hdfs://nn/a"); });
  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied) << error.message();
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("owner of the Kerberos ticket"), HasSubstr("kinit")));
  EXPECT_THAT(server_.Queries(), Not(HasSubstr("user.name")));
  options.find_token = [] { return "c2VjcmV0"; };  // a token has been forwarded since
  EXPECT_EQ(Thrown([&] { WebHdfs(options).Open("hdfs://nn/a"); }).code(), ErrorCode::kNotFound);
  options.token = "c2VjcmV0";
  EXPECT_EQ(Thrown([&] { WebHdfs(options).Open("hdfs://nn/a"); }).code(), ErrorCode::kNotFound);
}

TEST_F(WebHdfsTest, ReadsSmallPiecesInFewRequests) {
  const std::string bytes(20'000'000, 'x');  // NOLINT(bugprone-string-constructor)
  Write(files_, "hdfs://nn/a", bytes);
  const auto file = files_.Open("hdfs://nn/a");
  std::string piece(10'000, '\0');
  uint64_t offset = 0;
  while (const size_t count = file->ReadAt(offset, piece.data(), piece.size())) offset += count;
  EXPECT_EQ(offset, 20'000'000u);
  EXPECT_LE(Asked("OPEN"), 2u * 9) << "each takes one of the NameNode and one of the DataNode";
}

TEST_F(WebHdfsTest, ListsAtOnceIfTheServerDoesNotSupportBatches) {
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    Write(files_, std::string("hdfs://nn/f/") + name, "");
  }
  EXPECT_EQ(files_.List("hdfs://nn/f").size(), 5u);
  EXPECT_EQ(Asked("LISTSTATUS_BATCH"), 2u);
  Refuse("LISTSTATUS_BATCH", 9,
         WebHdfsServer::Exception(400, "IllegalArgumentException", "Invalid value for op"));
  EXPECT_EQ(files_.List("hdfs://nn/f").size(), 5u);
  EXPECT_EQ(files_.List("hdfs://nn/f").size(), 5u);
  EXPECT_EQ(Asked("LISTSTATUS_BATCH"), 3u) << "once is enough to know";
}

}  // namespace
}  // namespace hearth::storage
