#include "hearth/ring/ring_memory.h"

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "hearth/base/testing/error_testing.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::ring {
namespace {

// Reads the document's example: the bytes of each line, by their offset.
std::map<size_t, std::string> DocumentedRing() {
  std::ifstream file(HEARTH_TEST_DATA "/../../docs/format_batch.md");
  std::map<size_t, std::string> lines;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.starts_with("    ") ? line : "");
    size_t offset = 0;
    std::string bytes;
    words >> std::hex >> offset;
    for (int byte = 0; words >> byte;) bytes.push_back(static_cast<char>(byte));
    if (bytes.size() == 16) lines[offset] = bytes;
  }
  return lines;
}

using RingMemoryTest = RingTest;

TEST_F(RingMemoryTest, EqualsTheDocumentedBytes) {
  Open(64 << 10);
  EXPECT_TRUE(writer_->WriteFlush(Soon()));
  constexpr size_t kBytes = (4 << 10) + (64 << 10);
  const Mapping mapping(memory_.get(), 0, kBytes);
  const std::string_view bytes(reinterpret_cast<const char*>(mapping.data()), kBytes);
  const auto documented = DocumentedRing();
  EXPECT_EQ(documented.size(), 3u);
  for (size_t offset = 0; offset < kBytes; offset += 16) {
    const auto line = documented.find(offset);
    const std::string expected = line == documented.end() ? std::string(16, '\0') : line->second;
    ASSERT_EQ(bytes.substr(offset, 16), expected) << offset;
  }
}

TEST(RingMemory, EveryEntryUpToTheCapacityIsContiguous) {
  for (const size_t bytes : {size_t{100'000}, size_t{20} << 20}) {
    const RingMemory ring(RingMemory::Create(bytes));
    EXPECT_EQ(ring.capacity(), RoundUpToPages(bytes));
    std::byte* last_start = ring.At(ring.Checked(ring.window() - 64));
    last_start[ring.capacity() - 1] = std::byte{7};
  }
}

TEST(RingMemory, EntriesAlwaysStartInTheWindow) {
  const RingMemory ring(RingMemory::Create(32 << 20));
  EXPECT_EQ(ring.window(), 8u << 20);
  uint64_t position = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(ring.At(position) - ring.At(0), 8 << 20);
    position = ring.Checked(ring.After(position, i % 10 == 0 ? 30 << 20 : 1 << 20));
  }
  EXPECT_EQ(ring.After(0, 8 << 20), ring.After(0, 30 << 20)) << "both end outside of the window";
  EXPECT_EQ(ring.At(ring.After(0, 8 << 20)), ring.At(0));
}

TEST(RingMemory, ReleasedBytesAreFree) {
  const RingMemory ring(RingMemory::Create(64 << 10));
  const uint64_t lap = ring.After(0, 64 << 10);
  EXPECT_TRUE(ring.HasSpace(60 << 10, 0, 64 << 10)) << "after all others, beyond the window";
  EXPECT_FALSE(ring.HasSpace(lap, 0, 64)) << "nothing was released";
  EXPECT_TRUE(ring.HasSpace(lap, 8 << 10, 8 << 10));
  EXPECT_FALSE(ring.HasSpace(lap, 8 << 10, (8 << 10) + 64));
  EXPECT_FALSE(ring.HasSpace(lap + 64, 8 << 10, 8 << 10));
  EXPECT_TRUE(ring.HasSpace(lap, lap, 64 << 10));
  EXPECT_EQ(CodeOf([&] { ring.HasSpace(64, 128, 64); }), ErrorCode::kDataLoss);
  EXPECT_EQ(CodeOf([&] { ring.HasSpace(2 * lap, 0, 64); }), ErrorCode::kDataLoss);
}

TEST(RingMemory, InvalidPositionsAreRejected) {
  const RingMemory ring(RingMemory::Create(64 << 10));
  for (const uint64_t position : {uint64_t{1}, uint64_t{64 << 10}, ~uint64_t{63}}) {
    EXPECT_EQ(CodeOf([&] { ring.Checked(position); }), ErrorCode::kDataLoss) << position;
  }
}

TEST(RingMemory, BothSidesShareTheControlWords) {
  const Fd memory = RingMemory::Create(1 << 20);
  const RingMemory writer(memory);
  const RingMemory reader(memory);
  writer.control().written = 64;
  EXPECT_EQ(reader.control().written, 64u);
}

TEST(RingMemory, OtherMemoryIsRejected) {
  const Fd other = CreateSharedMemory("other", 1 << 20);
  EXPECT_EQ(CodeOf([&] { RingMemory ring(other); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { RingMemory ring{Fd()}; }), ErrorCode::kInvalidArgument);
}

TEST(RingMemory, TooSmallCapacityIsRejected) {
  EXPECT_EQ(CodeOf([] { RingMemory::Create(1000); }), ErrorCode::kInvalidArgument);
}

TEST(RingMemory, ForeignRingWithInvalidCapacityIsRejected) {
  constexpr size_t kControlBytes = 4096;
  for (const size_t capacity : {size_t{32}, size_t{4096}, size_t{64 << 10} + 32}) {
    const Fd memory = CreateSharedMemory("hearth-ring", kControlBytes + 2 * capacity);
    const Fd whole = RingMemory::Create(64 << 10);
    const Mapping from(whole.get(), 0, kControlBytes);
    const Mapping to(memory.get(), 0, kControlBytes);
    std::memcpy(to.data(), from.data(), kControlBytes);
    reinterpret_cast<RingControl*>(to.data())->capacity = capacity;
    EXPECT_EQ(CodeOf([&] { RingMemory ring(memory); }), ErrorCode::kInvalidArgument) << capacity;
  }
}

}  // namespace
}  // namespace hearth::ring
