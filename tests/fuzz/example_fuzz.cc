// tf.train.Example messages. The first two bytes are the length of the first of two examples. The
// values read from an example must not depend on earlier examples, whose shapes the reader caches.
#include <cstdint>
#include <string_view>
#include <vector>

#include "hearth/formats/tf_example.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

namespace {

std::vector<formats::FeatureColumn> Wanted() {
  using formats::FeatureKind;
  return {{.name = "f", .kind = FeatureKind::kFloat},
          {.name = "i", .kind = FeatureKind::kInt64},
          {.name = "b", .kind = FeatureKind::kBytes}};
}

bool Add(formats::ExampleColumns* rows, std::string_view example) {
  bool taken = false;
  fuzz::Refusable([&] {
    rows->Add(example);
    taken = true;
  });
  return taken;
}

// The bytes of the values in a column's last row.
std::vector<std::string_view> LastRow(const formats::FeatureColumn& column) {
  const auto begin = static_cast<size_t>(*(column.row_offsets.end() - 2));
  const auto end = static_cast<size_t>(column.row_offsets.back());
  const auto view = [&](const auto& values) {
    if (begin > end || end > values.size()) __builtin_trap();
    return std::string_view(reinterpret_cast<const char*>(values.data() + begin),
                            (end - begin) * sizeof(values[0]));
  };
  if (column.kind == formats::FeatureKind::kFloat) return {view(column.floats)};
  if (column.kind == formats::FeatureKind::kInt64) return {view(column.ints)};
  if (begin > end || end >= column.byte_offsets.size()) __builtin_trap();
  std::vector<std::string_view> values;
  for (size_t i = begin; i < end; ++i) {
    const auto from = static_cast<size_t>(column.byte_offsets[i]);
    const auto to = static_cast<size_t>(column.byte_offsets[i + 1]);
    if (from > to || to > column.bytes.size()) __builtin_trap();
    values.push_back(std::string_view(column.bytes).substr(from, to - from));
  }
  return values;
}

void MustBeEqual(formats::ExampleColumns* one, formats::ExampleColumns* other) {
  for (size_t i = 0; i < one->columns().size(); ++i) {
    const formats::FeatureColumn &a = one->columns()[i], &b = other->columns()[i];
    if (a.present.back() != b.present.back() || LastRow(a) != LastRow(b)) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view all = fuzz::Text(data + 2, size - 2);
  const std::string_view first = all.substr(0, data[0] | data[1] << 8);
  const std::string_view second = all.substr(first.size());
  formats::ExampleColumns together(Wanted()), alone(Wanted());
  for (int again = 0; again < 3; ++again) {
    if (!Add(&together, first)) return 0;  // readers stop at a malformed example
  }
  const bool taken = Add(&together, second);
  if (Add(&alone, second) != taken) __builtin_trap();
  if (taken) MustBeEqual(&together, &alone);
  fuzz::Refusable([&] {
    formats::ForEachFeature(second, [](std::string_view, formats::FeatureKind, int64_t count) {
      if (count < 0) __builtin_trap();
    });
  });
  return 0;
}
