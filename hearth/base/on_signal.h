// What a thread does when a signal interrupts a wait in PollOne, before the wait continues.
#pragma once

namespace hearth {

// In force for the thread that made it, while it lives. `call` may throw, which ends the wait.
class OnSignal {
 public:
  using Call = void (*)();

  explicit OnSignal(Call call);
  ~OnSignal();
  OnSignal(const OnSignal&) = delete;

  // Calls what is in force for this thread, if anything.
  static void Run();

 private:
  const Call before_;
};

}  // namespace hearth
