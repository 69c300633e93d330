// What a thread does when a signal ends one of its waits in PollOne, before it goes on waiting.
#pragma once

namespace hearth {

// In force for the thread that made it, while it lives. `call` may throw, which ends the wait.
class OnSignal {
 public:
  using Call = void (*)();

  explicit OnSignal(Call call);
  ~OnSignal();
  OnSignal(const OnSignal&) = delete;

  // What is in force for this thread; nothing where nothing is.
  static void Run();

 private:
  const Call before_;
};

}  // namespace hearth
