// Hook that runs when a signal interrupts a wait in PollOne, before the wait continues.
#pragma once

namespace hearth {

// Installs a hook on the thread that creates it, for the lifetime of this object. `call` may throw,
// which ends the wait.
class OnSignal {
 public:
  using Call = void (*)();

  explicit OnSignal(Call call);
  ~OnSignal();
  OnSignal(const OnSignal&) = delete;

  // Runs the hook of this thread, if any.
  static void Run();

 private:
  const Call before_;
};

}  // namespace hearth
