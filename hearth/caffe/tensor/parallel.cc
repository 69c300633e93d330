#include "hearth/caffe/tensor/parallel.h"

#include <atomic>

#include "hearth/caffe/tensor/device_library.h"

namespace hearth::caffe {
namespace {

// The process-wide number of threads. OpenMP stores a separate number for each thread that starts
// loops, so each thread sets it in its first ThreadCount().
std::atomic<int> thread_count{0};  // 0 if not set
thread_local bool knows_count = false;
thread_local int thread_number = 0;

}  // namespace

int ThreadCount() {
  if (!knows_count) {
    knows_count = true;
    if (const int count = thread_count; count > 0) omp_set_num_threads(count);
  }
  return omp_get_max_threads();
}

void SetThreadCount(int count) {
  thread_count = count;
  knows_count = true;
  omp_set_num_threads(count);
  // Simulated devices compute on these threads, too.
  SetDeviceLibraryThreads(count);
}

int ThreadNumber() { return thread_number; }

ThreadNumberScope::ThreadNumberScope(int number) : before_(thread_number) {
  thread_number = number;
}

ThreadNumberScope::~ThreadNumberScope() { thread_number = before_; }

}  // namespace hearth::caffe
