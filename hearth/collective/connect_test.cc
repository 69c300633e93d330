// Tests which sockets stay open after ranks have connected, and which ports the ranks use.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <sstream>
#include <string>

#include "hearth/base/error.h"
#include "hearth/base/socket.h"
#include "hearth/collective/testing/ranks_testing.h"

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
                                   ") is free: cannot listen on 127.0.0.1:" + port),
              std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace hearth::collective
