// For tests: strangers at a door who send a claim byte by byte, and come again as soon as they are
// thrown out. Owns the thread that does it; a call that fails there fails Leave.
#pragma once

#include <atomic>
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
  // `call` makes a connection to the door.
  SlowCrowd(std::function<Connection()> call, int strangers) : call_(std::move(call)) {
    for (int i = 0; i < strangers; ++i) strangers_.push_back(call_());
    drip_ = Thread("drip", [this] { Drip(); });
  }
  ~SlowCrowd() { over_ = true; }

  // Whether a hundred of them have been thrown out within the time.
  bool ThrownOut(std::chrono::seconds timeout) {
    return crowded_.get_future().wait_for(timeout) == std::future_status::ready;
  }

  void Leave() {
    over_ = true;
    drip_.Join();
  }

 private:
  void Drip() {
    const std::string claim = "HEARTH1\n" + std::string(72, 'x');
    int thrown_out = 0;
    for (size_t at = 0; !over_; ++at) {
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
  std::atomic<bool> over_{false};
  std::promise<void> crowded_;
  Thread drip_;  // last: it ends before what it uses
};

}  // namespace hearth::rendezvous
