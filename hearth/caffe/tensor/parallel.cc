#include "hearth/caffe/tensor/parallel.h"

#include <atomic>

#include "hearth/caffe/tensor/device_library.h"

namespace hearth::caffe {
namespace {

// OpenMP stores the number of threads separately for each thread that starts loops. So each thread
// sets it to the process-wide number when it first asks.
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
