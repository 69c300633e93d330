// Reads HDF5 files in a child process before this process reads them: the library, at least up to
// 1.10, reads and writes out of bounds if a file is damaged in certain ways.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "hearth/caffe/data/hdf5_file.h"

namespace hearth::caffe {

// Opens the file by `open` and reads its whole content in a child process. Throws kDataLoss, with
// `name`, if that crashes or takes too long for a file of `bytes`. Local files that survived are
// remembered by their path and not tried again until they change; `path` is empty for others. Any
// thread.
void TryHdf5(const std::string& name, const std::string& path, int64_t bytes,
             const std::function<Hdf5File()>& open);

}  // namespace hearth::caffe
