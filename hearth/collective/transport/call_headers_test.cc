#include "hearth/collective/transport/call_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::collective {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(CallHeaders, GoToTheNextRankAndComeFromThePreviousOne) {
  CallHeaders headers(2, 4);
  headers.Begin({.operation = Operation::kBarrier});
  for (int peer = 0; peer < 4; ++peer) {
    PeerHeaders with;
    headers.BeginWith(peer, &with);
    EXPECT_EQ(with.owed, peer == 3) << peer;
    EXPECT_EQ(with.awaited, peer == 1) << peer;
  }
}

TEST(CallHeaders, OfSenderAndReceiverAreEqual) {
  CallHeaders sender(0, 3), receiver(1, 3);
  PeerHeaders at_sender, at_receiver, at_other;
  const Call send = {.operation = Operation::kSend, .root = 1, .bytes = 8};
  const Call receive = {.operation = Operation::kReceive, .root = 0, .bytes = 8};
  EXPECT_FALSE(sender.BeginPair(send, 1, 2, &at_other));
  EXPECT_TRUE(sender.BeginPair(send, 1, 1, &at_sender));
  EXPECT_TRUE(receiver.BeginPair(receive, 0, 0, &at_receiver));
  EXPECT_FALSE(at_other.owed || at_other.awaited);
  EXPECT_TRUE(at_sender.owed && !at_sender.awaited);
  EXPECT_TRUE(at_receiver.awaited && !at_receiver.owed);
  EXPECT_EQ(sender.own(), receiver.own());
}

TEST(CallHeaders, CallsInBothDirectionsAreCountedSeparately) {
  CallHeaders headers(0, 2);
  PeerHeaders with;
  headers.BeginPair({.operation = Operation::kSend, .root = 1}, 1, 1, &with);
  EXPECT_EQ(headers.own().number, 1);
  headers.BeginPair({.operation = Operation::kReceive, .root = 1}, 1, 1, &with);
  EXPECT_EQ(headers.own().number, 1);
  headers.BeginPair({.operation = Operation::kSend, .root = 1}, 1, 1, &with);
  EXPECT_EQ(headers.own().number, 2);
}

TEST(CallHeaders, ADifferentCallOfAPeerIsAnErrorThatNamesBoth) {
  CallHeaders own(0, 2), other(1, 2);
  own.Begin({.operation = Operation::kAllReduce, .bytes = 4});
  other.Begin({.operation = Operation::kAllReduce, .bytes = 4});
  PeerHeaders with;
  with.received = other.own();
  own.Check(with, {1, "b"});
  other.Begin({.operation = Operation::kBarrier});
  with.received = other.own();
  EXPECT_THAT(
      [&] {
        own.Check(with, {1, "b"});
      },
      ThrowsMessage<Error>(HasSubstr("rank 1 on host b called barrier as operation number 2, but "
                                     "this rank is at operation number 1")));
}

}  // namespace
}  // namespace hearth::collective
