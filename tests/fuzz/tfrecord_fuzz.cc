// TFRecord files, also compressed: reads the records, none of which may exceed the limit.
#include <cstdint>

#include "hearth/formats/tfrecord.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kLargestRecord = 1 << 20;
  fuzz::Refusable([&] {
    formats::TfRecordReader reader(formats::OpenMemorySource(fuzz::Text(data, size)), "fuzz",
                                   kLargestRecord);
    // Limited, because a few bytes of gzip may contain any number of records.
    for (int i = 0; i < 10'000; ++i) {
      const auto record = reader.Next();
      if (!record) return;
      if (record->size() > kLargestRecord) __builtin_trap();
      unsigned sum = 0;
      for (const char byte : *record) sum += static_cast<unsigned char>(byte);
      if (sum == 0xffffffff) __builtin_trap();  // so that the reads are not optimized away
    }
  });
  return 0;
}
