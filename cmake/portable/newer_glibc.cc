// Functions that were added in glibc 2.29 to 2.36 and that compiled code calls, for systems with
// glibc 2.28. Linked as hidden symbols into the binaries of a portable wheel.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/types.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

struct stat;
struct stat64;

extern "C" {

// stat() and its variants called these functions before glibc 2.33. Later versions still have them.
int __xstat(int version, const char* path, struct stat* result);
int __lxstat(int version, const char* path, struct stat* result);
int __fxstat(int version, int descriptor, struct stat* result);
int __fxstatat(int version, int folder, const char* path, struct stat* result, int flags);

#define HEARTH_HIDDEN __attribute__((visibility("hidden")))

constexpr int kStatVersion = 1;  // for x86_64, where struct stat and struct stat64 are the same

HEARTH_HIDDEN int stat(const char* path, struct stat* result) {
  return __xstat(kStatVersion, path, result);
}
HEARTH_HIDDEN int lstat(const char* path, struct stat* result) {
  return __lxstat(kStatVersion, path, result);
}
HEARTH_HIDDEN int fstat(int descriptor, struct stat* result) {
  return __fxstat(kStatVersion, descriptor, result);
}
HEARTH_HIDDEN int fstatat(int folder, const char* path, struct stat* result, int flags) {
  return __fxstatat(kStatVersion, folder, path, result, flags);
}
HEARTH_HIDDEN int fstat64(int descriptor, struct stat64* result) {
  return __fxstat(kStatVersion, descriptor, reinterpret_cast<struct stat*>(result));
}

// libstdc++ counts references without atomic instructions while this is true.
HEARTH_HIDDEN char __libc_single_threaded = 0;

HEARTH_HIDDEN uint32_t arc4random() {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
    if (errno != EINTR) abort();
  }
  return value;
}

// If glibc lacks the function, waits by the time of day, as libstdc++ did before. If the clock is
// set back, such a wait lasts longer.
HEARTH_HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                         clockid_t clock, const struct timespec* until) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  static const auto own = reinterpret_cast<Wait>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
  if (own != nullptr) return own(condition, mutex, clock, until);
  constexpr int64_t kSecond = 1'000'000'000;
  timespec now{};
  timespec day{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &day);
  const int64_t left = (until->tv_sec - now.tv_sec) * kSecond + until->tv_nsec - now.tv_nsec;
  if (left <= 0) return ETIMEDOUT;
  const int64_t sum = day.tv_nsec + left;
  const timespec end{day.tv_sec + sum / kSecond, sum % kSecond};
  return pthread_cond_timedwait(condition, mutex, &end);
}

}  // extern "C"
