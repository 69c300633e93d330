#include "hearth/collective/transport/tcp_mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/hmac.h"
#include "hearth/base/log.h"
#include "hearth/base/testing/accept_testing.h"
#include "hearth/base/thread.h"
#include "hearth/rendezvous/testing/reset_testing.h"
#include "hearth/rendezvous/testing/slow_clients_testing.h"

namespace hearth::collective {
namespace {

using rendezvous::ResetStage;
using ::testing::HasSubstr;

// Counts log lines about rejected connections in its scope.
class Refusals {
 public:
  Refusals() {
    log::SetSink([this](const log::Record& record) {
      if (record.text.starts_with("refused a data connection")) named_.release();
      if (record.text.ends_with("data connections were refused")) summary_ = record.text;
    });
  }
  ~Refusals() { log::SetSink({}); }

  bool Await(int count) {
    while (count > 0 && named_.try_acquire_for(std::chrono::seconds(10))) --count;
    return count == 0;
  }
  const std::string& summary() const { return summary_; }

 private:
  std::counting_semaphore<> named_{0};
  std::string summary_;
};

// Stops a thread that polls `over`, even if the test ends early.
struct EndsThread {
  ~EndsThread() { over = true; }
  std::atomic<bool>& over;
};

class TcpMesh : public ::testing::Test {
 protected:
  TcpMesh() : listeners_() {
    listeners_.emplace_back("127.0.0.1");
    listeners_.emplace_back("127.0.0.1");
  }

  MeshSetup Setup(int self) {
    MeshSetup setup;
    for (int i = 0; i < 2; ++i) {
      setup.ranks.push_back({{i, "host" + std::to_string(i)}, "127.0.0.1", listeners_[i].port()});
    }
    setup.self = self;
    setup.token = token_;
    setup.session = "session";
    return setup;
  }

  std::vector<std::optional<Connection>> Connect(const MeshSetup& setup, double timeout_s = 20) {
    return ConnectMesh(setup, listeners_[setup.self], abort_, Deadline::After(timeout_s));
  }

  Connection Call() {
    return Connection::Connect("127.0.0.1", listeners_[0].port(), Deadline::After(5));
  }

  std::string ErrorOf(const MeshSetup& setup, double timeout_s) {
    try {
      Connect(setup, timeout_s);
    } catch (const Error& error) {
      return error.message();
    }
    return "connected";
  }

  const std::string token_ = NewToken();
  std::vector<TcpListener> listeners_;
  AbortSignal abort_;
};

TEST_F(TcpMesh, IsOnOneHostIfAllRanksListenAtOneAddress) {
  MeshSetup setup = Setup(0);
  EXPECT_TRUE(setup.one_host());
  setup.ranks[1].address = "127.0.0.2";
  EXPECT_FALSE(setup.one_host());
}

TEST_F(TcpMesh, ConnectsBothRanksToEachOther) {
  std::vector<std::optional<Connection>> first;
  Thread other("rank 1", [&] {
    auto own = Connect(Setup(1));
    own[0]->Write("hello", Deadline::After(5));
  });
  first = Connect(Setup(0));
  char text[5];
  first[1]->Read(text, sizeof(text), Deadline::After(5));
  EXPECT_EQ(std::string(text, sizeof(text)), "hello");
  EXPECT_FALSE(first[0].has_value());
  other.Join();
}

TEST_F(TcpMesh, RejectsAWrongTokenAndKeepsWaiting) {
  Thread accepting("rank 0", [&] { EXPECT_TRUE(Connect(Setup(0))[1].has_value()); });
  MeshSetup wrong = Setup(1);
  wrong.token = NewToken();
  EXPECT_THAT(ErrorOf(wrong, 20), HasSubstr("cannot connect to rank 0 on host host0"));
  EXPECT_TRUE(Connect(Setup(1))[0].has_value());
  accepting.Join();
}

TEST_F(TcpMesh, RejectsAProofOfAnEarlierSession) {
  Thread accepting("rank 0", [&] { EXPECT_TRUE(Connect(Setup(0))[1].has_value()); });
  MeshSetup earlier = Setup(1);
  earlier.session = "earlier";
  EXPECT_NE(ErrorOf(earlier, 20), "connected");
  EXPECT_TRUE(Connect(Setup(1))[0].has_value());
  accepting.Join();
}

TEST_F(TcpMesh, DropsAClientOfAnotherProtocol) {
  Thread accepting("rank 0", [&] { EXPECT_TRUE(Connect(Setup(0))[1].has_value()); });
  Connection client = Call();
  client.Write("GET / HTTP/1.1\r\n\r\n" + std::string(100, ' '), Deadline::After(5));
  EXPECT_TRUE(Connect(Setup(1))[0].has_value());
  accepting.Join();
}

TEST_F(TcpMesh, RejectsAnOldGeneration) {
  Thread accepting("rank 0", [&] {
    MeshSetup setup = Setup(0);
    setup.generation = 3;
    EXPECT_TRUE(Connect(setup)[1].has_value());
  });
  MeshSetup earlier = Setup(1), right = Setup(1);
  earlier.generation = 2;
  right.generation = 3;
  EXPECT_THAT(ErrorOf(earlier, 20), HasSubstr("cannot connect to rank 0 on host host0"));
  EXPECT_TRUE(Connect(right)[0].has_value());
  accepting.Join();
}

TEST_F(TcpMesh, SendsTheReasonToAnUnexpectedRank) {
  Thread accepting("rank 0", [&] {
    MeshSetup setup = Setup(0);
    setup.ranks[1].peer.rank = 7;
    EXPECT_TRUE(Connect(setup)[1].has_value());
  });
  EXPECT_THAT(ErrorOf(Setup(1), 20), HasSubstr("there is no such rank"));
  MeshSetup seventh = Setup(1);
  seventh.ranks[1].peer.rank = 7;
  EXPECT_TRUE(Connect(seventh)[0].has_value());
  accepting.Join();
}

TEST_F(TcpMesh, ManySlowClientsDoNotLockRanksOut) {
  Thread accepting("rank 0", [&] { EXPECT_TRUE(Connect(Setup(0))[1].has_value()); });
  rendezvous::SlowClients clients([&] { return Call(); }, 300);
  ASSERT_TRUE(clients.AwaitDrops(std::chrono::seconds(20)));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(Connect(Setup(1))[0].has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  clients.Leave();
  accepting.Join();
}

TEST_F(TcpMesh, ResetConnectionsAreCounted) {
  Refusals refusals;
  // These connections are reset before the listener accepts them.
  for (int i = 0; i < 3; ++i) rendezvous::ResetAt(ResetStage::kBeforeHello, Call());
  Thread accepting("rank 0", [&] { EXPECT_TRUE(Connect(Setup(0))[1].has_value()); });
  for (int i = 0; i < 3; ++i) {
    rendezvous::ResetAt(ResetStage::kInTheProof, Call());
    rendezvous::ResetAt(ResetStage::kAfterTheProof, Call());
  }
  EXPECT_TRUE(refusals.Await(9));
  EXPECT_TRUE(Connect(Setup(1))[0].has_value());
  accepting.Join();
  EXPECT_EQ(refusals.summary(), "9 data connections were refused");
}

TEST_F(TcpMesh, ResetConnectionsDoNotLockRanksOut) {
  std::atomic<bool> over = false;
  std::atomic<int> came = 0;
  Thread clients("clients", [&] {
    for (; !over; ++came) {
      Connection client = Call();
      if (came % 4 != 0) (void)client.WaitReadable(Deadline::After(0.002));  // waits for the hello
      rendezvous::Reset(std::move(client));
    }
  });
  const EndsThread ending{over};
  for (int round = 0; round < 20 || came < 200; ++round) {
    Thread accepting("rank 0", [&] { EXPECT_TRUE(Connect(Setup(0))[1].has_value()); });
    EXPECT_TRUE(Connect(Setup(1))[0].has_value());
    accepting.Join();
  }
  over = true;
  clients.Join();
}

TEST_F(TcpMesh, TheListenerSurvivesAcceptFailures) {
  const FailingAccept failing({EMFILE, ECONNABORTED, ENOBUFS, EPROTO});
  Thread accepting("rank 0", [&] { EXPECT_TRUE(Connect(Setup(0))[1].has_value()); });
  EXPECT_TRUE(Connect(Setup(1))[0].has_value());
  accepting.Join();
  EXPECT_EQ(FailingAccept::left(), 0u);
}

TEST_F(TcpMesh, NamesTheRankThatDidNotConnect) {
  EXPECT_THAT(ErrorOf(Setup(0), 0.1), HasSubstr("rank 1 on host host1 did not connect in time"));
}

TEST_F(TcpMesh, AbortEndsTheWaitForRanks) {
  abort_.Raise("rank 1 on host h failed");
  EXPECT_EQ(ErrorOf(Setup(0), 20), "rank 1 on host h failed");
}

}  // namespace
}  // namespace hearth::collective
