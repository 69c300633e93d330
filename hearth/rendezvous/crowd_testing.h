// For tests: clients without a token that send a claim byte by byte and reconnect as soon as they
// are dropped. Owns the thread that does it; a call that fails there fails Leave.
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

class SlowCrowd {
 public:
  // `call` makes a connection to the server.
  SlowCrowd(std::function<Connection()> call, int strangers) : call_(std::move(call)) {
    for (int i = 0; i < strangers; ++i) strangers_.push_back(call_());
    drip_ = Thread("drip", [this] { Drip(); });
  }
  ~SlowCrowd() { End(); }

  // Whether a hundred of them have been dropped within the time.
  bool ThrownOut(std::chrono::seconds timeout) {
    return crowded_.get_future().wait_for(timeout) == std::future_status::ready;
  }

  void Leave() {
    End();
    drip_.Join();
  }

 private:
  void End() {
    if (!std::exchange(ended_, true)) over_.set_value();
  }

  // A claim would take 8 seconds, longer than a server may wait: no client completes one, so that
  // only the server can end them.
  void Drip() {
    const std::future<void> over = over_.get_future();
    const std::string claim = "HEARTH1\n" + std::string(72, 'x');
    int thrown_out = 0;
    const auto pause = std::chrono::milliseconds(100);
    for (size_t at = 0; over.wait_for(pause) != std::future_status::ready; ++at) {
      for (Connection& stranger : strangers_) {
        try {
          stranger.TryWrite(&claim[at % claim.size()], 1);
        } catch (const Error&) {
          stranger = call_();
          if (++thrown_out == 100) crowded_.set_value();
        }
      }
    }
  }

  const std::function<Connection()> call_;
  std::vector<Connection> strangers_;
  bool ended_ = false;
  std::promise<void> over_, crowded_;
  Thread drip_;  // last: it ends before what it uses
};

}  // namespace hearth::rendezvous
