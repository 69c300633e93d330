#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/socket.h"
#include "hearth/base/thread.h"

namespace hearth::rendezvous {

// Unauthenticated test clients that send a claim byte by byte and reconnect when they are dropped.
// Owns a thread; Leave() throws the thread's errors.
class SlowClients {
 public:
  // `call` connects to the server and returns the connection.
  SlowClients(std::function<Connection()> call, int count) : call_(std::move(call)) {
    for (int i = 0; i < count; ++i) clients_.push_back(call_());
    drip_ = Thread("drip", [this] { Drip(); });
  }
  ~SlowClients() { End(); }

  // Waits until a hundred clients have been dropped; returns false at the timeout.
  bool AwaitDrops(std::chrono::seconds timeout) {
    return dropped_.get_future().wait_for(timeout) == std::future_status::ready;
  }

  void Leave() {
    End();
    drip_.Join();
  }

 private:
  void End() {
    if (!std::exchange(ended_, true)) stop_.set_value();
  }

  // A claim takes 8 seconds, longer than the server's timeout, so no client completes one and all
  // are dropped by the server.
  void Drip() {
    const std::future<void> stop = stop_.get_future();
    const std::string claim = "HEARTH1\n" + std::string(72, 'x');
    int drops = 0;
    const auto pause = std::chrono::milliseconds(100);
    for (size_t at = 0; stop.wait_for(pause) != std::future_status::ready; ++at) {
      for (Connection& client : clients_) {
        try {
          client.TryWrite(&claim[at % claim.size()], 1);
        } catch (const Error&) {
          client = call_();
          if (++drops == 100) dropped_.set_value();
        }
      }
    }
  }

  const std::function<Connection()> call_;
  std::vector<Connection> clients_;
  bool ended_ = false;
  std::promise<void> stop_, dropped_;
  Thread drip_;  // last: joined before the fields that it uses are destroyed
};

}  // namespace hearth::rendezvous
