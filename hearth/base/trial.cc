#include "hearth/base/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>

#include "hearth/base/parent_death.h"

namespace hearth {
namespace {

// The child's word that it came to its end. It counts, as a process that ignores SIGCHLD learns no
// exit status.
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

// What the library says on its way down would read as our end: "stack smashing detected".
void Silence() {
  const int nothing = ::open("/dev/null", O_WRONLY);
  if (nothing < 0) return;
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(nothing, STDERR_FILENO);
}

[[noreturn]] void RunChild(pid_t parent, unsigned cpu_seconds, const std::function<void()>& work,
                           SharedFlag* finished) {
  // Whoever handles these in the parent would report the child's end as its own.
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGTERM}) {
    ::signal(number, SIG_DFL);
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
    // The caller meets it again.
  }
  finished->Set();
  ::_exit(0);
}

std::string EndOf(pid_t child, int status, bool known) {
  if (!known) return fmt::format("an unknown end of process {}", child);
  if (!WIFSIGNALED(status)) return fmt::format("exit status {}", WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  return fmt::format("signal {} ({})", number, ::strsignal(number));
}

}  // namespace

TrialEnd RunTrial(std::mutex& during_fork, unsigned cpu_seconds,
                  const std::function<void()>& work) {
  SharedFlag finished;
  if (!finished.ok()) return {};
  const pid_t self = ::getpid();
  std::unique_lock<std::mutex> lock(during_fork);
  const pid_t child = ::fork();
  lock.unlock();
  if (child < 0) return {};
  if (child == 0) RunChild(self, cpu_seconds, work, &finished);
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (finished.IsSet()) return {};
  return {false, EndOf(child, status, ended == child)};
}

}  // namespace hearth
