#include "hearth/dataset/spool/ring_source.h"

#include <gmock/gmock.h>

#include <thread>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/testing/source_testing.h"
#include "hearth/ring/ring_writer.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::dataset {
namespace {

using ring::WriteNumbers;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RingSourceTest : public ::testing::Test {
 protected:
  RingSourceTest() : RingSourceTest(ring::CreateRing(64 << 10)) {}
  explicit RingSourceTest(ring::RingEnds ends)
      : writer_(std::move(ends.writer)), source_(std::move(ends.reader), 10) {}

  ring::RingWriter writer_;
  RingSource source_;
};

TEST_F(RingSourceTest, MinibatchesSpanBatchesButNotMarks) {
  WriteNumbers(writer_, 0, 3);
  WriteNumbers(writer_, 3, 2);
  writer_.WriteFlush(Soon());
  writer_.WriteFlush(Soon());
  WriteNumbers(writer_, 5, 1);
  writer_.WriteEnd(Soon());
  Minibatch minibatch;
  source_.Next(4, &minibatch);
  EXPECT_THAT(NumbersIn(minibatch), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(TakeEpoch(source_, 4), ElementsAre(4));
  EXPECT_FALSE(source_.ended());
  source_.NextEpoch();
  EXPECT_THAT(TakeEpoch(source_, 4), IsEmpty()) << "an empty partition";
  source_.NextEpoch();
  EXPECT_EQ(source_.epoch(), 2);
  EXPECT_THAT(TakeEpoch(source_, 4), ElementsAre(5));
  EXPECT_TRUE(source_.ended());
}

TEST_F(RingSourceTest, MinibatchMayBeLargerThanTheRing) {
  std::thread feeder([&] {
    for (int32_t i = 0; i < 10; ++i) WriteNumbers(writer_, i * 10'000, 10'000);
    writer_.WriteEnd(Soon());
  });
  Minibatch minibatch;
  EXPECT_EQ(source_.Next(100'000, &minibatch), 100'000);
  feeder.join();
  EXPECT_EQ(NumbersIn(minibatch)[99'999], 99'999);
}

}  // namespace
}  // namespace hearth::dataset
