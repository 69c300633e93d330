#include "hearth/base/on_signal.h"

#include <utility>

namespace hearth {
namespace {

// Per thread: I/O threads also wait in PollOne, but only the thread that runs the Python
// interpreter may run its signal handlers.
thread_local OnSignal::Call in_force = nullptr;

}  // namespace

OnSignal::OnSignal(Call call) : before_(std::exchange(in_force, call)) {}

OnSignal::~OnSignal() { in_force = before_; }

void OnSignal::Run() {
  if (in_force != nullptr) in_force();
}

}  // namespace hearth
