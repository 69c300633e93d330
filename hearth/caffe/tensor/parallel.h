// Parallel loops of the engine, on OpenMP's threads. The number of threads is process-wide; each
// thread reads it when it first runs a loop. Thread-safe.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

namespace hearth::caffe {

// The number of threads that a loop of the calling thread may use: the value of SetThreadCount(),
// or else OpenMP's default (OMP_NUM_THREADS, or the cores that the process may use).
int ThreadCount();
// Sets the number for the calling thread, and for threads that run their first loop afterwards.
void SetThreadCount(int count);

// Returns true inside a loop that runs on several threads. Loops inside it run on one thread.
inline bool InParallelRegion() { return omp_in_parallel() != 0; }
// The calling thread's number in its innermost loop: at least 0 and less than the loop's
// ThreadCount().
int ThreadNumber();

// Sets ThreadNumber() while the object exists.
class ThreadNumberScope {
 public:
  explicit ThreadNumberScope(int number);
  ~ThreadNumberScope();
  ThreadNumberScope(const ThreadNumberScope&) = delete;
  ThreadNumberScope& operator=(const ThreadNumberScope&) = delete;

 private:
  const int before_;
};

// Splits [begin, end) into ranges of at least `grain` items, one per thread, and calls f(first,
// last) for each. The ranges depend only on the arguments and ThreadCount(). If `f` throws, one of
// its exceptions is rethrown to the caller after all threads have finished.
template <typename Function>
void ParallelFor(int64_t begin, int64_t end, int64_t grain, const Function& f) {
  if (begin >= end) return;
  const int64_t count = end - begin;
  if (count == 1 || count <= grain || InParallelRegion() || ThreadCount() == 1) {
    const ThreadNumberScope scope(0);
    f(begin, end);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel
  {
    int64_t threads = omp_get_num_threads();
    if (grain > 0) threads = std::min(threads, (count + grain - 1) / grain);
    const int64_t number = omp_get_thread_num(), size = (count + threads - 1) / threads;
    const int64_t first = begin + number * size;
    if (first < end) {
      try {
        const ThreadNumberScope scope(static_cast<int>(number));
        f(first, std::min(end, first + size));
      } catch (...) {
#pragma omp critical(hearth_parallel_failure)
        if (!failure) failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace hearth::caffe
