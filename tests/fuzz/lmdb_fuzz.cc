// LMDB: the pages of a database file, read from its first record to its last.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "hearth/base/fd.h"
#include "hearth/caffe/data/database/database.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Fd file(memfd_create("fuzz.mdb", MFD_CLOEXEC));
  if (write(file.get(), data, size) != static_cast<ssize_t>(size)) __builtin_trap();
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  fuzz::Refusable([&] {
    unsigned sum = 0;
    for (auto cursor = caffe::OpenDatabase(caffe::DataParameter::LMDB, path); cursor->valid();
         cursor->Next()) {
      for (const char byte : cursor->key()) sum += static_cast<unsigned char>(byte);
      for (const char byte : cursor->value()) sum += static_cast<unsigned char>(byte);
    }
    if (sum == 0xffffffff) __builtin_trap();  // so that the reads are not optimized away
  });
  return 0;
}
