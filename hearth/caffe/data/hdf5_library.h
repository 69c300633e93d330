// Serializes calls of the HDF5 library and adds its error reports to our errors.
#pragma once

#include <mutex>
#include <string>

namespace hearth::caffe {

// Held during each call: the library is thread-safe only if it was built with that option.
class Hdf5Lock {
 public:
  // Also turns off the library's reports to stderr, which is a per-thread setting.
  Hdf5Lock();

 private:
  std::lock_guard<std::mutex> guard_;
};

// The library's message on this thread's last failed call, after a colon; may be empty.
std::string Hdf5Reason();

}  // namespace hearth::caffe
