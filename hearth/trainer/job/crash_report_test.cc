#include "hearth/trainer/job/crash_report.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "hearth/base/socket.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/net/net.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::trainer {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// A layer whose Forward crashes.
class CrashingLayer : public caffe::Layer {
 public:
  using Layer::Layer;
  caffe::LayerTraits traits() const override { return {.arity = {0, 0, 1, 1}}; }
  void Reshape(const caffe::Blobs&, const caffe::Blobs& top) override { top[0]->Reshape({1}); }
  void Forward(const caffe::Blobs&, const caffe::Blobs&) override { raise(SIGFPE); }
  void Backward(const caffe::Blobs&, const std::vector<bool>&, const caffe::Blobs&) override {}
};

// Runs `body` in a child process with crash reports.
class CrashReportTest : public ::testing::Test {
 protected:
  CrashReportTest() {
    job_.host = "host-3";
    job_.rank = 3;
  }

  // Returns what the child wrote to its control channel, and stores the signal that ended it in
  // signal_.
  std::string Crash(const std::function<void()>& body) {
    auto [own, theirs] = Connection::Pair();
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit none = {0, 0};
      ::setrlimit(RLIMIT_CORE, &none);
      ReportCrashes(theirs.fd(), job_);
      body();
      ::_exit(0);
    }
    { const Connection closed = std::move(theirs); }
    std::string text;
    char buffer[4096];
    while (const size_t count = own.ReadSome(buffer, sizeof buffer, Soon())) {
      text.append(buffer, count);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return text;
  }

  Job job_;
  int signal_ = 0;
};

TEST_F(CrashReportTest, IsOneEventWithRankAndIteration) {
  const std::string text = Crash([] {
    SetIterationForCrashes(12);
    raise(SIGSEGV);
  });
  EXPECT_EQ(signal_, SIGSEGV) << "the process must end as without a report";
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const json event = json::parse(text);
  EXPECT_EQ(event["event"], "error");
  EXPECT_EQ(event["code"], "unavailable");
  EXPECT_EQ(event["lost"], true);
  EXPECT_EQ(event["rank"], 3);
  EXPECT_EQ(event["host"], "host-3");
  EXPECT_EQ(event["iteration"], 12);
  EXPECT_EQ(event["layer"], "");
  EXPECT_THAT(event["message"].get<std::string>(), HasSubstr("crashed with SIGSEGV"));
}

TEST_F(CrashReportTest, IsWrittenForEachFatalSignal) {
  for (const int number : {SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    const json event = json::parse(Crash([number] {
      SetIterationForCrashes(-1);  // other tests in this process may have set an iteration
      raise(number);
    }));
    EXPECT_EQ(signal_, number);
    EXPECT_EQ(event["iteration"], -1);
    const std::string message = event["message"];
    EXPECT_THAT(message, Not(HasSubstr("iteration"))) << "none has begun";
    if (number == SIGBUS) {
      EXPECT_THAT(message, HasSubstr("memory-mapped file"));
    }
  }
}

// The layer's name has characters that JSON would have to escape.
TEST_F(CrashReportTest, NamesTheLayer) {
  const json event = json::parse(Crash([] {
    caffe::LayerRegistry registry = caffe::LayerRegistry::Default();
    registry.Add<CrashingLayer>("Crash");
    caffe::Net net(caffe::ParseNet("layer { name: 'conv\"1\\\\' type: 'Crash' top: 'x' }", "net"),
                   {}, registry);
    net.Forward();
  }));
  EXPECT_EQ(signal_, SIGFPE);
  EXPECT_EQ(event["layer"], "conv?1?");
  EXPECT_THAT(event["message"].get<std::string>(), HasSubstr("layer 'conv?1?' (Crash), forward"));
}

volatile bool endless = true;

// Each call needs a new page of the stack.
char FillStack(const char* above) {  // NOLINT(misc-no-recursion)
  volatile char page[4096];
  page[0] = *above;
  if (!endless) return page[0];
  return static_cast<char>(FillStack(const_cast<const char*>(page)) + page[0]);
}

TEST_F(CrashReportTest, IsWrittenAfterAStackOverflow) {
  const json event = json::parse(Crash([] { FillStack("x"); }));
  EXPECT_EQ(signal_, SIGSEGV);
  EXPECT_EQ(event["rank"], 3);
}

TEST_F(CrashReportTest, IsValidForHostsOfAnyName) {
  for (const std::string& host : {std::string("a\"b\\\n\xff"), std::string(5000, 'h')}) {
    job_.host = host;
    const json event = json::parse(Crash([] { raise(SIGSEGV); }));
    EXPECT_THAT(event["message"].get<std::string>(), HasSubstr("SIGSEGV"));
  }
}

// A driver that is stuck must not keep the process from ending.
TEST_F(CrashReportTest, DoesNotWaitForItsReader) {
  auto [own, theirs] = Connection::Pair();
  const std::string block(1 << 16, 'x');
  while (theirs.TryWrite(block.data(), block.size()) > 0) {
  }
  const int full = theirs.fd();
  Crash([&] {
    ReportCrashes(full, job_);
    raise(SIGSEGV);
  });
  EXPECT_EQ(signal_, SIGSEGV);
}

}  // namespace
}  // namespace hearth::trainer
