#include "hearth/storage/http.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "hearth/base/fd.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/storage/testing/webhdfs_server_testing.h"

namespace hearth::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class HttpClientTest : public ::testing::Test {
 protected:
  HttpRequest Get(const std::string& path = "/a") const {
    HttpRequest request;
    request.method = "GET";
    request.url = server_.address() + path;
    request.seconds = 20;
    return request;
  }
  void Answer(const WebHdfsServer::Reply& reply) {
    server_.Intercept([reply](const ServerRequest&) { return reply; });
  }

  WebHdfsServer server_;
  HttpClient client_;
};

TEST_F(HttpClientTest, StoresABodyWhereTheRequestWantsIt) {
  Answer(WebHdfsServer::Json(200, "0123456789"));
  std::string store(10, '-');
  HttpRequest request = Get();
  request.store = store;
  const HttpAnswer answer = client_.Send(request);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.stored, 10u);
  EXPECT_EQ(store, "0123456789");
  EXPECT_EQ(answer.body, "");
  // The text of an error response is not written to the buffer.
  Answer(WebHdfsServer::Json(404, "not found"));
  EXPECT_EQ(client_.Send(request).body, "not found");
  EXPECT_EQ(store, "0123456789");
}

TEST_F(HttpClientTest, RefusesMoreThanWasAskedFor) {
  Answer(WebHdfsServer::Json(200, std::string(100, 'x')));
  std::string store(99, '-');
  HttpRequest request = Get();
  request.store = store;
  const Error stored = Thrown([&] { client_.Send(request); });
  EXPECT_EQ(stored.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(stored.message(), HasSubstr("more than the 99 bytes allowed"));
  request = Get();
  request.largest_answer = 50;
  EXPECT_THAT(Thrown([&] { client_.Send(request); }).message(), HasSubstr("50 bytes allowed"));
}

TEST_F(HttpClientTest, SendsAFileFromItsStart) {
  std::string name = ::testing::TempDir() + "http_test_XXXXXX";
  const Fd file(::mkstemp(name.data()));
  ::unlink(name.c_str());
  const std::string bytes(300'000, 'b');
  ASSERT_EQ(::write(file.get(), bytes.data(), bytes.size()), 300'000);
  std::mutex mutex;
  std::string received;
  server_.Intercept([&](const ServerRequest& request) {
    const std::lock_guard lock(mutex);
    received = request.body;
    return WebHdfsServer::Json(201, "");
  });
  HttpRequest request = Get();
  request.method = "PUT";
  request.body = file.get();
  request.body_size = bytes.size();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client_.Send(request).status, 201);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(received, bytes);
}

TEST_F(HttpClientTest, ReturnsRedirectsWithoutFollowingThem) {
  Answer("HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/b\r\nContent-Length: 0\r\n\r\n");
  const HttpAnswer answer = client_.Send(Get());
  EXPECT_EQ(answer.status, 307);
  EXPECT_EQ(answer.location, "http://127.0.0.1:1/b");
  Answer("HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/" + std::string(20'000, 'b') +
         "\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(CodeOf([&] { client_.Send(Get()); }), ErrorCode::kDataLoss);
}

TEST_F(HttpClientTest, ErrorsNameTheHostButNotTheToken) {
  TcpListener closed("127.0.0.1");
  const int port = closed.port();
  { const TcpListener gone = std::move(closed); }
  HttpRequest request = Get();
  request.url = "http://127.0.0.1:" + std::to_string(port) + "/a?delegation=c2VjcmV0";
  const Error refused = Thrown([&] { client_.Send(request); });
  EXPECT_EQ(refused.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("127.0.0.1"), Not(HasSubstr("c2VjcmV0"))));
  Answer("");  // closes the connection without a response
  EXPECT_EQ(CodeOf([&] { client_.Send(Get()); }), ErrorCode::kUnavailable);
  Answer("SSH-2.0-OpenSSH_9.6\r\n");
  EXPECT_EQ(CodeOf([&] { client_.Send(Get()); }), ErrorCode::kDataLoss);
}

// The request is cancelled while the server's response is incomplete.
TEST_F(HttpClientTest, ACancelledRequestEnds) {
  Cancellation cancellation;
  server_.Intercept([&](const ServerRequest&) {
    cancellation.Cancel();
    return "HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nsome";
  });
  HttpRequest request = Get();
  request.cancellation = &cancellation;
  EXPECT_EQ(CodeOf([&] { client_.Send(request); }), ErrorCode::kAborted);
  EXPECT_FALSE(cancellation.Pause(1000)) << "a pause after it ends at once";
}

TEST_F(HttpClientTest, KeepsItsConnectionUnlessARequestMayNotBeRepeated) {
  Answer(WebHdfsServer::Json(200, "x"));
  HttpRequest request = Get();
  for (int i = 0; i < 3; ++i) client_.Send(request);
  EXPECT_EQ(server_.Connections(), 1u);
  request.only_once = true;
  client_.Send(request);
  EXPECT_EQ(server_.Connections(), 2u);
}

TEST(EscapedTest, KeepsSlashesAndEscapesAllOtherReservedBytes) {
  EXPECT_EQ(Escaped("/a b%c/\xc3\xa4?&=+~_-.z9"), "/a%20b%25c/%C3%A4%3F%26%3D%2B~_-.z9");
}

TEST(HostOfUrlTest, DropsTheUserAndThePassword) {
  EXPECT_EQ(HostOfUrl("http://alice:sesame@nn:9870/webhdfs?op=x"), "nn:9870");
  EXPECT_EQ(HostOfUrl("https://nn"), "nn");
  EXPECT_EQ(HostOfUrl("nn:1/a"), "nn:1");
}

}  // namespace
}  // namespace hearth::storage
