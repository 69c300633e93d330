#include "hearth/feed/ring_memory.h"

#include "hearth/feed/feed_testing.h"

namespace hearth::feed {
namespace {

TEST(RingMemory, EveryEntryUpToTheCapacityIsContiguous) {
  const RingMemory ring(RingMemory::Create(100'000));
  EXPECT_EQ(ring.capacity(), 102'400u) << "whole pages";
  std::byte* last = ring.At(5 * ring.capacity() - 1);
  last[0] = std::byte{7};
  last[ring.capacity()] = std::byte{8};
  EXPECT_EQ(last[0], std::byte{8}) << "the second mapping shows the same byte";
}

TEST(RingMemory, TwoSidesSeeTheSameControlWords) {
  const Fd memory = RingMemory::Create(1 << 20);
  const RingMemory writer(memory);
  const RingMemory reader(memory);
  writer.control().written = 64;
  EXPECT_EQ(reader.control().written, 64u);
}

TEST(RingMemory, OtherMemoryIsNotTakenForARing) {
  const Fd other = CreateSharedMemory("other", 1 << 20);
  EXPECT_EQ(CodeOf([&] { RingMemory ring(other); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { RingMemory ring{Fd()}; }), ErrorCode::kInvalidArgument);
}

TEST(RingMemory, TooSmallARingIsRefused) {
  EXPECT_EQ(CodeOf([] { RingMemory::Create(1000); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace hearth::feed
