#include "hearth/caffe/net/parallel.h"

#include <ATen/Parallel.h>

namespace hearth::caffe {
namespace {

thread_local int thread_number = 0;

}  // namespace

// ATen's own loops use the same threads.
int ThreadCount() { return at::get_num_threads(); }

void SetThreadCount(int count) { at::set_num_threads(count); }

int ThreadNumber() { return thread_number; }

ThreadNumberScope::ThreadNumberScope(int number) : before_(thread_number) {
  thread_number = number;
}

ThreadNumberScope::~ThreadNumberScope() { thread_number = before_; }

}  // namespace hearth::caffe
