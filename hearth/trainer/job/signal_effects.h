// Effects of SIGINT and SIGHUP on a local training, as in the caffe program.
#pragma once

#include <csignal>
#include <string>

namespace hearth::trainer {

enum class SignalEffect { kNone, kStop, kSnapshot };

// Parses "stop", "snapshot" or "none". Anything else throws kInvalidArgument, which names `flag`.
SignalEffect ParseSignalEffect(const std::string& flag, const std::string& text);

// The handlers of SIGINT and SIGHUP. The constructor installs them, and the destructor restores the
// old ones. At most one object per process at a time.
class SignalEffects {
 public:
  SignalEffects(SignalEffect on_sigint, SignalEffect on_sighup);
  ~SignalEffects();
  SignalEffects(const SignalEffects&) = delete;
  SignalEffects& operator=(const SignalEffects&) = delete;

  // Returns the effect of the signals since the last call; stop takes precedence over snapshot.
  SignalEffect Take();
  // Returns true if Take would return kStop.
  bool StopIsDue() const;

 private:
  SignalEffect on_sigint_, on_sighup_;
  struct sigaction old_sigint_ {
  }, old_sighup_{};
};

}  // namespace hearth::trainer
