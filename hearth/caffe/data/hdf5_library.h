// Calls of the HDF5 library: one at a time, and its reports as part of our errors.
#pragma once

#include <mutex>
#include <string>

namespace hearth::caffe {

// Held during each call: the library is thread-safe only where it was built so.
std::mutex& Hdf5Mutex();

class Hdf5Lock {
 public:
  // Also turns off the library's own reports to stderr, which it keeps per thread.
  Hdf5Lock();

 private:
  std::lock_guard<std::mutex> guard_;
};

// The library's own words on the call of this thread that just failed, after a colon; may be empty.
std::string Hdf5Reason();

}  // namespace hearth::caffe
