// Serializes calls of the HDF5 library and adds its error messages to our errors.
#pragma once

#include <mutex>
#include <string>

namespace hearth::caffe {

// Must be held during each call, because only some builds of the library are thread-safe.
class Hdf5Lock {
 public:
  // Also turns off the library's error output to stderr for this thread.
  Hdf5Lock();

 private:
  std::lock_guard<std::mutex> guard_;
};

// ": " and the library's message on this thread's last failed call; empty if there is none.
std::string Hdf5Reason();

}  // namespace hearth::caffe
