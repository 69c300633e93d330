#include "hearth/storage/webhdfs.h"

#include <gmock/gmock.h>

#include <sys/wait.h>
#include <unistd.h>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/storage/testing/webhdfs_testing.h"

namespace hearth::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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

TEST_F(WebHdfsTest, DoesNotMixTheBytesOfTwoFiles) {
  Write(files_, "hdfs://nn/a", std::string(1'000'000, 'x'));
  const auto file = files_.Open("hdfs://nn/a");
  std::string chunk(1000, '\0');
  EXPECT_EQ(file->ReadAt(0, chunk.data(), chunk.size()), 1000u);
  Write(files_, "hdfs://nn/a", std::string(1'000'000, 'y'));
  const Error error = Thrown([&] { file->ReadAt(900'000, chunk.data(), chunk.size()); });
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

TEST_F(WebHdfsTest, AForkedChildUsesSeparateConnections) {
  Write(files_, "hdfs://nn/a", "parent's");
  Write(files_, "hdfs://nn/b", "child's.");
  EXPECT_EQ(files_.ReadAll("hdfs://nn/a"), "parent's");  // the client keeps a connection
  const size_t before = server_.Connections();
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    // If the child used the parent's connection, it would read the parent's response.
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
  // A NameNode with Kerberos wraps the InvalidToken exception in a SecurityException.
  error = refused(403, "SecurityException",
                  "Failed to obtain user group information: org.apache.hadoop.security.token."
                  "SecretManager$InvalidToken: Token for real user: , can't be found in cache");
  EXPECT_THAT(error.message(), HasSubstr("max-lifetime"));
  // In a path, the name of an exception's class does not change the error.
  error = refused(404, "FileNotFoundException", "File /GSSException/$InvalidToken does not exist");
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  error =
      refused(403, "AccessControlException", "Permission denied: user=alice, inode=/GSSException");
  EXPECT_THAT(error.message(), HasSubstr("ask the owner"));
  Refuse("GETFILESTATUS", 1, WebHdfsServer::Json(401, "<html>"));
  error = Thrown([&] { files_.Open("hdfs://nn/a"); });
  EXPECT_THAT(error.message(), AllOf(HasSubstr("Kerberos"), HasSubstr("kinit")));
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
  // the first call of find_token returned the old token
  EXPECT_THAT(error.message(), HasSubstr("max-lifetime"));
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
  // If newer tokens are rejected, too, there are no endless retries.
  int number = 0;
  options.find_token = [&number] { return std::to_string(++number); };
  WebHdfs others(options);
  Refuse("GETFILESTATUS", 1 << 20, reply);
  EXPECT_THAT(Thrown([&] { others.Stat("hdfs://nn/a"); }).message(), HasSubstr("max-lifetime"));
  EXPECT_EQ(number, 1);
}

TEST_F(WebHdfsTest, AuthenticatesByTicketIfTheClusterRequiresKerberos) {
  // This process has no ticket, and no user name is sent. tests/hadoop/soak_kerberos.py tests with
  // a ticket.
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
  options.find_token = [] { return "c2VjcmV0"; };  // a token has been forwarded meanwhile
  EXPECT_EQ(Thrown([&] { WebHdfs(options).Open("hdfs://nn/a"); }).code(), ErrorCode::kNotFound);
  options.token = "c2VjcmV0";
  EXPECT_EQ(Thrown([&] { WebHdfs(options).Open("hdfs://nn/a"); }).code(), ErrorCode::kNotFound);
}

TEST_F(WebHdfsTest, ReadsSmallRangesInFewRequests) {
  const std::string bytes(20'000'000, 'x');  // NOLINT(bugprone-string-constructor)
  Write(files_, "hdfs://nn/a", bytes);
  const auto file = files_.Open("hdfs://nn/a");
  std::string chunk(10'000, '\0');
  uint64_t offset = 0;
  while (const size_t count = file->ReadAt(offset, chunk.data(), chunk.size())) offset += count;
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
