#include "hearth/base/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "hearth/base/parent_death.h"

namespace hearth {
namespace {

// Set by the child when `work` has returned; a process that ignores SIGCHLD gets no exit status.
class SharedFlag {
 public:
  SharedFlag()
      : page_(::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;
  ~SharedFlag() {
    if (ok()) ::munmap(page_, sizeof(std::atomic<int>));
  }

  bool ok() const { return page_ != MAP_FAILED; }
  void Set() { Value() = 1; }
  bool IsSet() { return Value() == 1; }

 private:
  std::atomic<int>& Value() { return *static_cast<std::atomic<int>*>(page_); }

  void* const page_;
};

void SetLimit(decltype(RLIMIT_CPU) resource, rlim_t value) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  limit.rlim_cur = std::min(value, limit.rlim_max);
  ::setrlimit(resource, &limit);
}

// Hides output of a crashing library, which would look like our own: "stack smashing detected".
void Silence() {
  const int nothing = ::open("/dev/null", O_WRONLY);
  if (nothing < 0) return;
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(nothing, STDERR_FILENO);
}

[[noreturn]] void RunChild(pid_t parent, unsigned cpu_seconds, const std::function<void()>& work,
                           SharedFlag* finished) {
  // The parent's handlers of these would report the child's crash as the parent's.
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU}) {
    ::signal(number, SIG_DFL);
  }
  // These are meant for the parent, as they are sent to whole process groups, and its handlers may
  // write to files that both have open. The child dies with the parent anyway.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    ::signal(number, SIG_IGN);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  Silence();
  SetLimit(RLIMIT_CORE, 0);
  SetLimit(RLIMIT_CPU, cpu_seconds);
  try {
    DieWithParent(parent);
    work();
  } catch (const std::exception&) {
    // thrown again in the caller
  }
  finished->Set();
  ::_exit(0);
}

TrialEnd EndOf(pid_t child, int status, bool known) {
  if (!known) return {false, false, fmt::format("an unknown end of process {}", child)};
  if (!WIFSIGNALED(status)) {
    return {false, false, fmt::format("exit status {}", WEXITSTATUS(status))};
  }
  const int number = WTERMSIG(status);
  return {false, number == SIGKILL, fmt::format("signal {} ({})", number, ::strsignal(number))};
}

// Processor time used by a child, in nanoseconds; 0 if unknown.
int64_t UsedBy(pid_t child) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(child, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return used.tv_sec * 1'000'000'000 + used.tv_nsec;
}

// Waits for the child's end like waitpid(); returns false if it made no progress for too long and
// was killed.
bool WaitFor(pid_t child, std::chrono::milliseconds longest_pause, int* status, bool* known) {
  using std::chrono::microseconds;
  constexpr microseconds kLongestLook{20'000};
  microseconds look{100}, pause{0};
  int64_t used = 0;
  for (bool ended_here = false;; std::this_thread::sleep_for(look)) {
    const pid_t ended = ::waitpid(child, status, ended_here ? 0 : WNOHANG);
    *known = ended == child;
    if (ended != 0 && (ended > 0 || errno != EINTR)) return !ended_here;
    const int64_t now = UsedBy(child);
    pause = now == used ? pause + look : microseconds{0};
    used = now;
    if (pause >= longest_pause) {
      ::kill(child, SIGKILL);
      ended_here = true;
    }
    look = std::min(2 * look, kLongestLook);
  }
}

}  // namespace

TrialEnd RunTrial(std::mutex& during_fork, unsigned cpu_seconds, const std::function<void()>& work,
                  std::chrono::milliseconds longest_pause) {
  SharedFlag finished;
  if (!finished.ok()) return {};
  const pid_t self = ::getpid();
  std::unique_lock<std::mutex> lock(during_fork);
  const pid_t child = ::fork();
  lock.unlock();
  if (child < 0) return {};
  if (child == 0) RunChild(self, cpu_seconds, work, &finished);
  int status = 0;
  bool known = false;
  const bool went_on = WaitFor(child, longest_pause, &status, &known);
  if (finished.IsSet() || !went_on) return {};
  return EndOf(child, status, known);
}

}  // namespace hearth
