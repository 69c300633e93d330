// Tests the transport choice, and what connecting leaves behind.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "hearth/base/error.h"
#include "hearth/base/socket.h"
#include "hearth/collective/testing/ranks_testing.h"
#include "hearth/collective/transport/rdma_device.h"
#include "hearth/collective/transport_choice.h"

namespace hearth::collective {
namespace {

// Inodes of this process's descriptors.
std::set<ino_t> OwnInodes() {
  std::set<ino_t> inodes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    struct stat status {};
    if (::stat(entry.path().c_str(), &status) == 0) inodes.insert(status.st_ino);
  }
  return inodes;
}

// Ports on which this process listens.
std::set<int> ListeningPorts() {
  const std::string listening = "0A";
  const std::set<ino_t> own = OwnInodes();
  std::set<int> ports;
  std::ifstream table("/proc/self/net/tcp");
  std::string line;
  for (std::getline(table, line); std::getline(table, line);) {
    std::istringstream fields(line);
    std::string slot, local, remote, state, skipped;
    ino_t inode = 0;
    fields >> slot >> local >> remote >> state;
    for (int i = 0; i < 5; ++i) fields >> skipped;
    fields >> inode;
    if (state != listening || !own.contains(inode)) continue;
    ports.insert(std::stoi(local.substr(local.find(':') + 1), nullptr, 16));
  }
  return ports;
}

// Waits for a port that was not open before.
int AwaitNewPort(const std::set<int>& before) {
  for (const Deadline deadline = Deadline::After(20); !deadline.expired();) {
    for (const int port : ListeningPorts()) {
      if (!before.contains(port)) return port;
    }
  }
  return -1;
}

bool Answers(int port) {
  try {
    Connection::Connect("127.0.0.1", port, Deadline::After(5));
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << error.message();
    return false;
  }
}

// True if the peer has closed the connection, or closes it within the timeout.
bool Ends(Connection& connection) {
  char bytes[64];
  while (connection.WaitReadable(Deadline::After(5))) {
    const auto got = connection.TryRead(bytes, sizeof(bytes));
    if (got && *got == 0) return true;
  }
  return false;
}

TEST(ConnectedMesh, HasNoListenerAfterwards) {
  std::promise<std::set<int>> before;
  RunRanks(2, [&](rendezvous::Member& member) {
    const GroupOptions options = {.timeout_s = 30, .shared_memory = false};
    if (member.rank() == 0) {
      before.set_value(ListeningPorts());
      Group::Connect(member, options).front()->Barrier(Deadline::After(20));
      return;
    }
    // Rank 0 is listening and waits for this rank.
    const std::set<int> known = before.get_future().get();
    const int port = AwaitNewPort(known);
    ASSERT_GT(port, 0);
    Connection client = Connection::Connect("127.0.0.1", port, Deadline::After(5));
    const auto groups = Group::Connect(member, options);
    groups.front()->Barrier(Deadline::After(20));
    EXPECT_EQ(ListeningPorts(), known);
    EXPECT_FALSE(Answers(port));
    EXPECT_TRUE(Ends(client));
  });
}

// Sets an environment variable in its scope.
class ScopedVariable {
 public:
  explicit ScopedVariable(const char* value, const char* variable = "HEARTH_TRANSPORT")
      : variable_(variable) {
    setenv(variable_, value, 1);
  }
  ~ScopedVariable() { unsetenv(variable_); }

 private:
  const char* const variable_;
};

TEST(Transport, IsSelectedByTheEnvironment) {
  const std::map<const char*, std::string> descriptions = {
      {"auto", "shared memory"}, {"shm", "shared memory"}, {"tcp", "tcp"}};
  for (const auto& [transport, description] : descriptions) {
    const ScopedVariable chosen(transport);
    RunRanks(2, [&](rendezvous::Member& member) {
      const auto groups = Group::Connect(member, {});
      EXPECT_EQ(groups.front()->description(), description) << transport;
      groups.front()->Barrier(Deadline::After(20));
    });
  }
}

TEST(Transport, SharedMemoryAloneIsRejectedBetweenHosts) {
  const ScopedVariable chosen("shm");
  try {
    RunRanks(2, [](rendezvous::Member& member) {
      Group::Connect(member, {.host_id = std::to_string(member.rank())});
    });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("HEARTH_TRANSPORT=shm, but"), std::string::npos)
        << error.message();
  }
}

// The error of two ranks without an RDMA device that require one.
std::string RdmaError(const GroupOptions& options) {
  try {
    RunRanks(2, [&](rendezvous::Member& member) { Group::Connect(member, options); });
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(Transport, RdmaIsRejectedWithoutAnActiveDevice) {
  if (!FindRdmaDevice().name.empty()) GTEST_SKIP() << "there is a device";
  const std::string reason = "rank 0 on host host0 does not use RDMA: " + FindRdmaDevice().missing;
  EXPECT_EQ(RdmaError({.wire = Medium::kRdma}),
            "RDMA is required, but " + reason + "; use auto or tcp");
  const ScopedVariable chosen("rdma");
  EXPECT_EQ(RdmaError({}), "RDMA is required, but " + reason + "; use auto or tcp");
}

TEST(Transport, BetweenHostsIsRdmaIfEveryRankHasIt) {
  if (const std::string reason = SkipReason(Wiring::kUcx); !reason.empty()) GTEST_SKIP() << reason;
  for (const bool all_have_it : {true, false}) {
    RunRanks(2, [&](rendezvous::Member& member) {
      GroupOptions options = {.ucx_transports = "tcp", .host_id = std::to_string(member.rank())};
      if (!all_have_it && member.rank() == 1) options.wire = Medium::kTcp;
      const auto groups = Group::Connect(member, options);
      EXPECT_EQ(groups.front()->description(), all_have_it ? "rdma" : "tcp");
      groups.front()->Barrier(Deadline::After(20));
    });
  }
}

TEST(Transport, BetweenHostsIsRdmaByADevice) {
  const RdmaDevice device = FindRdmaDevice();
  if (device.name.empty()) GTEST_SKIP() << device.missing;
  RunRanks(2, [](rendezvous::Member& member) {
    const auto groups = Group::Connect(member, {.host_id = std::to_string(member.rank())});
    EXPECT_EQ(groups.front()->description(), "rdma");
    groups.front()->Barrier(Deadline::After(20));
  });
}

TEST(Transport, IsEncryptedIfTheEnvironmentRequiresIt) {
  for (const auto& [choice, description] :
       {std::pair("on", "tcp with TLS"), std::pair("off", "tcp"), std::pair("", "tcp")}) {
    const ScopedVariable chosen("tcp");
    const ScopedVariable tls(choice, "HEARTH_TLS");
    RunRanks(2, [&](rendezvous::Member& member) {
      const auto groups = Group::Connect(member, {});
      EXPECT_EQ(groups.front()->description(), description) << choice;
      groups.front()->Barrier(Deadline::After(20));
    });
  }
}

TEST(Transport, ListensOnThePortsThatTheEnvironmentNames) {
  const ScopedVariable ports("7400-7499", "HEARTH_MESH_PORT");
  EXPECT_EQ(WithChosenTransport({}).listen_port, 7400);
  EXPECT_EQ(WithChosenTransport({}).listen_ports, 100);
  EXPECT_EQ(WithChosenTransport({.listen_port = 7300}).listen_ports, 1);
  for (const char* wrong : {"7400", "7499-7400", "0-9", "7400-7499x", "7400-70000", "some"}) {
    const ScopedVariable none(wrong, "HEARTH_MESH_PORT");
    EXPECT_THROW(WithChosenTransport({}), Error) << wrong;
  }
}

TEST(Transport, EncryptionOnSomeRanksOnlyIsRejected) {
  try {
    RunRanks(2, [](rendezvous::Member& member) {
      Group::Connect(member, {.wire = Medium::kTcp, .encrypt = member.rank() == 1});
    });
    FAIL() << "connected";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find("rank 1 on host host1 differ in HEARTH_TLS"), std::string::npos)
        << error.message();
  }
}

TEST(Transport, RdmaIsRejectedIfEncryptionIsRequired) {
  try {
    RunRanks(2, [](rendezvous::Member& member) {
      const GroupOptions options = {
          .wire = Medium::kRdma, .encrypt = true, .ucx_transports = "tcp"};
      Group::Connect(member, options);
    });
    FAIL() << "connected";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("it requires TLS"), std::string::npos) << error.message();
  }
}

TEST(Transport, AnUnknownNameIsRejected) {
  const ScopedVariable chosen("pigeon");
  try {
    RunRanks(1, [](rendezvous::Member& member) { Group::Connect(member, {}); });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find("HEARTH_TRANSPORT=pigeon"), std::string::npos);
  }
}

TEST(ConnectedMesh, UsesTheFirstFreePortOfItsRange) {
  const TcpListener taken("127.0.0.1");
  RunRanks(1, [&](rendezvous::Member& member) {
    const GroupOptions options = {.listen_port = taken.port(), .listen_ports = 200};
    Group::Connect(member, options).front()->Barrier(Deadline::After(20));
  });
}

TEST(ConnectedMesh, NamesThePortRangeIfNoneIsFree) {
  const TcpListener taken("127.0.0.1");
  try {
    RunRanks(1, [&](rendezvous::Member& member) {
      Group::Connect(member, {.listen_port = taken.port(), .listen_ports = 1});
    });
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string port = std::to_string(taken.port());
    EXPECT_NE(error.message().find("no port of spark.hearth.mesh.port (" + port + "-" + port +
                                   ") is free: listening on 127.0.0.1:" + port),
              std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace hearth::collective
