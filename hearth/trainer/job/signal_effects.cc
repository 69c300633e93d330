#include "hearth/trainer/job/signal_effects.h"

#include <atomic>

#include "hearth/base/error.h"

namespace hearth::trainer {
namespace {

std::atomic<bool> got_sigint{false}, got_sighup{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Only stores the signal; the training thread reacts after its iteration.
void Note(int signal) { (signal == SIGINT ? got_sigint : got_sighup) = true; }

// Also handles a signal that has no effect, because its default action would end the process. The
// handler is not SIG_IGN, because child processes would inherit it.
void Install(int signal, struct sigaction* old) {
  struct sigaction action {};
  action.sa_handler = Note;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, old);
}

}  // namespace

SignalEffect ParseSignalEffect(const std::string& flag, const std::string& text) {
  if (text == "stop") return SignalEffect::kStop;
  if (text == "snapshot") return SignalEffect::kSnapshot;
  if (text == "none") return SignalEffect::kNone;
  Throw(ErrorCode::kInvalidArgument, "-{} must be stop, snapshot or none, got \"{}\"", flag, text);
}

SignalEffects::SignalEffects(SignalEffect on_sigint, SignalEffect on_sighup)
    : on_sigint_(on_sigint), on_sighup_(on_sighup) {
  // The flags are cleared before the handlers are installed, because earlier signals belong to an
  // earlier training of this process.
  got_sigint = got_sighup = false;
  Install(SIGINT, &old_sigint_);
  Install(SIGHUP, &old_sighup_);
}

SignalEffects::~SignalEffects() {
  sigaction(SIGINT, &old_sigint_, nullptr);
  sigaction(SIGHUP, &old_sighup_, nullptr);
}

bool SignalEffects::StopIsDue() const {
  return (got_sigint && on_sigint_ == SignalEffect::kStop) ||
         (got_sighup && on_sighup_ == SignalEffect::kStop);
}

// A stop takes precedence, because it also ends with a snapshot unless snapshot_after_train is off.
SignalEffect SignalEffects::Take() {
  const SignalEffect first = got_sigint.exchange(false) ? on_sigint_ : SignalEffect::kNone;
  const SignalEffect second = got_sighup.exchange(false) ? on_sighup_ : SignalEffect::kNone;
  if (first == SignalEffect::kStop || second == SignalEffect::kStop) return SignalEffect::kStop;
  return first != SignalEffect::kNone ? first : second;
}

}  // namespace hearth::trainer
