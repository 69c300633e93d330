#include "hearth/caffe/data/hdf5_library.h"

#include <hdf5.h>

namespace hearth::caffe {

namespace {

std::mutex& Hdf5Mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

// HDF5's error output is a setting of each thread, so each lock turns it off for the current
// thread.
Hdf5Lock::Hdf5Lock() : guard_(Hdf5Mutex()) { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

std::string Hdf5Reason() {
  // H5E_WALK_UPWARD starts at the innermost function, whose entry names the cause.
  std::string reason;
  const H5E_walk2_t take = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    auto& text = *static_cast<std::string*>(out);
    if (text.empty() && error->desc != nullptr) text = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &reason);
  return reason.empty() ? "" : ": " + reason;
}

}  // namespace hearth::caffe
