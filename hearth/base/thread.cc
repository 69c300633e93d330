#include "hearth/base/thread.h"

#include <pthread.h>

#include <utility>

#include "hearth/base/log.h"

namespace hearth {

Thread::Thread(std::string name, std::function<void()> body) : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
  // Captures a pointer to the State rather than `this`, because the Thread may be moved while the
  // body runs.
  thread_ = std::thread([state = state_.get(), body = std::move(body)] {
    // Cuts the name, because the kernel rejects names of more than 15 characters.
    ::pthread_setname_np(::pthread_self(), state->name.substr(0, 15).c_str());
    try {
      body();
    } catch (...) {
      state->error = std::current_exception();
    }
  });
}

Thread::~Thread() {
  if (!joinable()) return;
  try {
    Join();
  } catch (const std::exception& error) {
    // A destructor must not throw, so an exception that Join() has not rethrown is logged.
    log::Error("the thread '{}' ended with an uncaught error: {}", state_->name, error.what());
  } catch (...) {
    log::Error("the thread '{}' ended with an unknown exception", state_->name);
  }
}

void Thread::Join() {
  if (joinable()) thread_.join();
  if (state_ && state_->error) std::rethrow_exception(std::exchange(state_->error, nullptr));
}

}  // namespace hearth
