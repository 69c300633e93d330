// TFRecord files, packed ones too: records one after the other, never more than the file can hold.
#include <cstdint>

#include "hearth/formats/tfrecord.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // an entry function, nothing else

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kLargestRecord = 1 << 20;
  fuzz::Refusable([&] {
    formats::TfRecordReader reader(formats::OpenMemorySource(fuzz::Text(data, size)), "fuzz",
                                   kLargestRecord);
    // A few bytes of gzip may be any number of records.
    for (int i = 0; i < 10'000; ++i) {
      const auto record = reader.Next();
      if (!record) return;
      if (record->size() > kLargestRecord) __builtin_trap();
      unsigned sum = 0;
      for (const char byte : *record) sum += static_cast<unsigned char>(byte);
      if (sum == 0xffffffff) __builtin_trap();  // the bytes are read
    }
  });
  return 0;
}
