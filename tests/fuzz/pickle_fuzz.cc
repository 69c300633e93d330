// Pickled rows: whatever the bytes are, each value that was made is dropped, or given back once.
#include <cstdint>
#include <span>
#include <vector>

#include "hearth/feed/pickle_reader.h"
#include "hearth/feed/pickled_columns.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // an entry function, nothing else

namespace {

// Counts handles; a value is the number of its kind.
struct CountingBuilder {
  enum Value { kPlain, kList, kDict, kFailed };

  Value Make(Value value = kPlain) {
    ++handles;
    return value;
  }
  Value None() { return Make(); }
  Value Bool(bool) { return Make(); }
  Value Int(int64_t) { return Make(); }
  Value Float(double) { return Make(); }
  Value Text(std::string_view text) { return text.ends_with('x') ? kFailed : Make(); }
  Value Bytes(std::string_view) { return Make(); }
  Value Dict() { return Make(kDict); }
  Value Again(Value value) { return Make(value); }
  bool Failed(Value value) { return value == kFailed; }
  void Drop(Value) { --handles; }
  Value List(std::span<Value> items) {
    handles -= static_cast<int64_t>(items.size());
    return Make(kList);
  }
  Value Tuple(std::span<Value> items) {
    handles -= static_cast<int64_t>(items.size());
    return Make();
  }
  bool Extend(Value list, std::span<Value> items) {
    handles -= static_cast<int64_t>(items.size());
    return list == kList;
  }
  bool SetItems(Value dict, std::span<Value> items) {
    handles -= static_cast<int64_t>(items.size());
    return dict == kDict;
  }

  int64_t handles = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  CountingBuilder builder;
  bool whole = false;
  {
    feed::PickleReader reader(fuzz::Text(data, size), &builder);
    whole = reader.Read().has_value();
  }
  if (builder.handles != (whole ? 1 : 0)) __builtin_trap();
  if (const auto found = feed::ReadPickledColumns(fuzz::Text(data, size))) {
    for (const feed::NumberColumn& column : found->columns) {
      const int64_t width = column.width > 0 ? column.width : 1;
      if (static_cast<int64_t>(column.values.size()) != found->rows * width) __builtin_trap();
    }
  }
  return 0;
}
