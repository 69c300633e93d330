#include "hearth/dataset/wake_up.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "hearth/base/error.h"
#include "hearth/base/fd.h"
#include "hearth/base/socket.h"

namespace hearth::dataset {
namespace {

// Unlocks the mutex for its lifetime.
class Unlocked {
 public:
  explicit Unlocked(std::unique_lock<std::mutex>& lock) : lock_(lock) { lock_.unlock(); }
  ~Unlocked() { lock_.lock(); }
  Unlocked(const Unlocked&) = delete;

 private:
  std::unique_lock<std::mutex>& lock_;
};

class Registered {
 public:
  Registered(std::set<int>& waiting, int fd) : waiting_(waiting), fd_(fd) { waiting.insert(fd); }
  ~Registered() { waiting_.erase(fd_); }
  Registered(const Registered&) = delete;

 private:
  std::set<int>& waiting_;
  const int fd_;
};

}  // namespace

bool WakeUp::Wait(std::unique_lock<std::mutex>& lock, Deadline deadline,
                  const std::function<bool()>& ready) {
  if (ready()) return true;
  const Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid()) ThrowErrno(errno, "cannot create an eventfd");
  // The eventfd is registered before the mutex is released, so that no notification is missed. It
  // is used instead of a condition variable because poll() returns when a signal arrives.
  const Registered registered(waiting_, event.get());
  while (true) {
    {
      const Unlocked unlocked(lock);
      (void)PollOne(event.get(), POLLIN, deadline);
    }
    uint64_t count = 0;
    // Resets the counter, so that the next poll() waits for a new notification.
    (void)!::read(event.get(), &count, sizeof(count));
    if (ready()) return true;
    if (deadline.expired()) return false;
  }
}

void WakeUp::NotifyAll() {
  const uint64_t one = 1;
  for (const int fd : waiting_) (void)!::write(fd, &one, sizeof(one));
}

}  // namespace hearth::dataset
