// HDF5 files are read once in a child process before they are read in ours: the library, up to 1.10
// at least, reads and writes outside of its buffers where a file is damaged in certain ways.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "hearth/caffe/data/hdf5_file.h"

namespace hearth::caffe {

// Opens the file by `open` and reads all that is in it, in a child process. Throws kDataLoss, with
// `name`, where that crashes or takes too long for a file of `bytes`. Files of this machine that
// survived are known by their path and not tried again until they change; `path` is empty for
// others. Any thread may call it.
void TryHdf5(const std::string& name, const std::string& path, int64_t bytes,
             const std::function<Hdf5File()>& open);

}  // namespace hearth::caffe
