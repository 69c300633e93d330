// Serializes calls of the HDF5 library and adds its error messages to our errors.
#pragma once

#include <mutex>
#include <string>

namespace hearth::caffe {

// A process-wide lock for the HDF5 library. It must be held during each call, because only some
// builds of the library are thread-safe.
class Hdf5Lock {
 public:
  // Also turns off the library's error output to stderr for this thread.
  Hdf5Lock();

 private:
  std::lock_guard<std::mutex> guard_;
};

// Returns ": " and the library's message for the last failed call of this thread, or "" if there is
// none.
std::string Hdf5Reason();

}  // namespace hearth::caffe
