// Tests of the WebHDFS client with servers that send invalid responses.
#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/storage/testing/webhdfs_server_testing.h"
#include "hearth/storage/webhdfs.h"

namespace hearth::storage {
namespace {

using testing::HasSubstr;

constexpr char kStatus[] =
    R"({"FileStatus": {"type": "FILE", "length": 1000, "modificationTime": 1, "pathSuffix": ""}})";

class HostileServer : public testing::Test {
 protected:
  // Opens and reads a file while the server sends `reply` for `operation`. Returns the error.
  Error Read(const std::string& operation, const WebHdfsServer::Reply& reply) {
    server_.Intercept([=](const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
      if (request.operation() == operation) return reply;
      if (request.operation() == "GETFILESTATUS") return WebHdfsServer::Json(200, kStatus);
      return std::nullopt;
    });
    WebHdfs files({.addresses = {server_.address()},
                   .user = "alice",
                   .repeat_seconds = 0.3,
                   .answer_seconds = 2});
    return Thrown([&] { files.ReadAll("hdfs://nn/a"); });
  }

  WebHdfsServer server_;
};

TEST_F(HostileServer, SendsGarbage) {
  EXPECT_EQ(Read("GETFILESTATUS", "garbage\r\n\r\n\r\n").code(), ErrorCode::kDataLoss);
  for (const char* body :
       {"", "[]", "{}", "<html>", R"({"FileStatus": 7})", R"({"FileStatus": {"type": 1}})",
        R"({"FileStatus": {"type": "FILE", "length": -1, "modificationTime": 1}})",
        R"({"FileStatus": {"type": "FILE", "length": 1e300, "modificationTime": 1}})",
        R"({"FileStatus": {"type": "FILE", "length": 18446744073709551615}})"}) {
    EXPECT_EQ(Read("GETFILESTATUS", WebHdfsServer::Json(200, body)).code(), ErrorCode::kDataLoss)
        << body;
  }
  EXPECT_THAT(Read("GETFILESTATUS", WebHdfsServer::Json(404, "<html>not here</html>")).message(),
              HasSubstr("web address"));
}

TEST_F(HostileServer, SendsMoreOrLessThanRequested) {
  const auto of = [](size_t size) { return WebHdfsServer::Json(200, std::string(size, 'x')); };
  EXPECT_EQ(Read("OPEN", of(1001)).code(), ErrorCode::kDataLoss);
  EXPECT_THAT(Read("OPEN", of(999)).message(), HasSubstr("received 999 bytes instead of 1000"));
  EXPECT_THAT(Read("GETFILESTATUS", of(2 << 20)).message(), HasSubstr("bytes allowed"));
  const std::string endless =
      "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n" + std::string(1 << 20, 'x');
  EXPECT_EQ(Read("OPEN", endless).code(), ErrorCode::kDataLoss);
}

TEST_F(HostileServer, SendsDeeplyNestedJson) {
  const std::string deep = "{\"FileStatus\":" + std::string(500'000, '[');
  EXPECT_THAT(Read("GETFILESTATUS", WebHdfsServer::Json(200, deep)).message(),
              HasSubstr("too deeply"));
}

TEST_F(HostileServer, SendsNothing) {
  // The headers never end, and the connection stays open until the client closes it.
  server_.Intercept([](const ServerRequest&) { return "HTTP/1.1 200 X\r\nContent-Length: 9\r\n"; });
  WebHdfs files({.addresses = {server_.address()},
                 .user = "alice",
                 .repeat_seconds = 0,
                 .answer_seconds = 0.5});
  const ErrorCode code = Thrown([&] { files.Stat("hdfs://nn/a"); }).code();
  EXPECT_THAT(code, testing::AnyOf(ErrorCode::kDeadlineExceeded, ErrorCode::kUnavailable));
}

TEST_F(HostileServer, SendsEndlessHeaders) {
  const std::string line = "X-Filler: " + std::string(1000, 'x') + "\r\n";
  std::string head = "HTTP/1.1 200 X\r\n";
  while (head.size() < 1 << 20) head += line;
  EXPECT_THAT(Read("GETFILESTATUS", head).message(), HasSubstr("allowed for response headers"));
}

TEST_F(HostileServer, ReportsAHugeSize) {
  for (const char* length : {"8999999999999999999", "1099511627776"}) {
    server_.Intercept([=](const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
      if (request.operation() == "OPEN") return WebHdfsServer::Json(200, "few");
      return WebHdfsServer::Json(200, std::string(R"({"FileStatus": {"type": "FILE", "length": )") +
                                          length + R"(, "modificationTime": 1}})");
    });
    WebHdfs files({.addresses = {server_.address()}, .user = "alice", .repeat_seconds = 0.1});
    EXPECT_EQ(Thrown([&] { files.ReadAll("hdfs://nn/a"); }).code(), ErrorCode::kDataLoss);
  }
}

TEST_F(HostileServer, RedirectsAnOperationThatHasNoDataNode) {
  WebHdfsServer other;
  const std::string to = "HTTP/1.1 307 X\r\nLocation: " + other.address() +
                         "/webhdfs/v1/a?op=DELETE&delegation=c2VjcmV0\r\nContent-Length: 0\r\n\r\n";
  server_.Intercept([=](const ServerRequest&) { return to; });
  WebHdfs files({.addresses = {server_.address()}, .token = "c2VjcmV0", .repeat_seconds = 0.1});
  const Error error = Thrown([&] { files.Delete("hdfs://nn/a", false); });
  EXPECT_THAT(error.message(), testing::AllOf(HasSubstr("redirects an operation"),
                                              testing::Not(HasSubstr("c2VjcmV0"))));
  EXPECT_THAT(other.Requests(), testing::IsEmpty());
}

TEST_F(HostileServer, RedirectsAReaderToAnotherHost) {
  // The client requests only the URL in the redirect and sends no credentials.
  WebHdfsServer other;
  std::string authorization = "none";
  other.Intercept([&](const ServerRequest& request) {
    if (request.headers.contains("authorization")) authorization = "some";
    return WebHdfsServer::Json(200, "bytes");
  });
  const std::string to = "HTTP/1.1 307 X\r\nLocation: " + other.address() +
                         "/data?op=OPEN\r\nContent-Length: 0\r\n\r\n";
  server_.Intercept([=](const ServerRequest& request) {
    if (request.operation() == "OPEN") return to;
    return WebHdfsServer::Json(
        200, R"({"FileStatus": {"type": "FILE", "length": 5, "modificationTime": 1}})");
  });
  std::string address = server_.address();
  address.insert(7, "alice:sesame@");
  WebHdfs files({.addresses = {address}, .token = "c2VjcmV0"});
  EXPECT_EQ(files.ReadAll("hdfs://nn/a"), "bytes");
  EXPECT_EQ(authorization, "none");
  EXPECT_EQ(other.Queries(), "op=OPEN ");
}

TEST_F(HostileServer, RedirectPasswordsAreMasked) {
  std::string address = server_.address();
  address.insert(7, "alice:sesame@");
  server_.Intercept([](const ServerRequest&) { return WebHdfsServer::Json(404, "<html>"); });
  WebHdfs files({.addresses = {address}, .user = "alice", .repeat_seconds = 0.1});
  EXPECT_THAT(Thrown([&] { files.Stat("hdfs://nn/a"); }).message(),
              testing::AllOf(HasSubstr("***@127.0.0.1"), testing::Not(HasSubstr("sesame"))));
}

TEST_F(HostileServer, RedirectsInALoopOrToOtherProtocols) {
  const auto to = [](const std::string& location) {
    return "HTTP/1.1 307 X\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n";
  };
  EXPECT_THAT(Read("OPEN", to(server_.address() + "/webhdfs/v1/a?op=OPEN")).message(),
              HasSubstr("loop"));
  for (const char* location : {"file:///etc/passwd", "ftp://127.0.0.1/a", "gopher://127.0.0.1/a"}) {
    EXPECT_THAT(Read("OPEN", to(location)).message(), HasSubstr("not http: or https:")) << location;
  }
  EXPECT_EQ(Read("OPEN", "HTTP/1.1 307 X\r\nContent-Length: 0\r\n\r\n").code(),
            ErrorCode::kDataLoss);
}

TEST_F(HostileServer, AcceptsAFileWithoutItsBytes) {
  server_.Intercept([](const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    if (request.operation() == "CREATE") return WebHdfsServer::Json(201, "");
    return std::nullopt;
  });
  WebHdfs files({.addresses = {server_.address()}, .user = "alice", .repeat_seconds = 0.1});
  EXPECT_EQ(Thrown([&] { files.Create("hdfs://nn/a"); }).code(), ErrorCode::kDataLoss);
}

TEST_F(HostileServer, SendsAnEndlessListing) {
  server_.Intercept([](const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
    return WebHdfsServer::Json(
        200, R"({"DirectoryListing": {"remainingEntries": 5, "partialListing": {"FileStatuses":
            {"FileStatus": [{"pathSuffix": "a", "type": "FILE", "length": 1,
                             "modificationTime": 1}]}}}})");
  });
  WebHdfs files({.addresses = {server_.address()}, .user = "alice", .repeat_seconds = 0.1});
  EXPECT_THAT(Thrown([&] { files.List("hdfs://nn/f"); }).message(), HasSubstr("does not end"));
}

}  // namespace
}  // namespace hearth::storage
