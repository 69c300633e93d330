#include "hearth/base/on_signal.h"

#include <utility>

namespace hearth {
namespace {

// Per thread: only the thread that runs Python's interpreter may run its signal handlers, while I/O
// threads wait in the same PollOne.
thread_local OnSignal::Call in_force = nullptr;

}  // namespace

OnSignal::OnSignal(Call call) : before_(std::exchange(in_force, call)) {}

OnSignal::~OnSignal() { in_force = before_; }

void OnSignal::Run() {
  if (in_force != nullptr) in_force();
}

}  // namespace hearth
