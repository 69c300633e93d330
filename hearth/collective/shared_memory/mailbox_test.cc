#include "hearth/collective/shared_memory/mailbox.h"

#include <gmock/gmock.h>

#include <numeric>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/collective/testing/local_ranks_testing.h"

namespace hearth::collective {
namespace {

Call CallOfBytes(Operation operation, uint64_t bytes, int peer) {
  return {.operation = operation, .type = DataType::kInt64, .root = peer, .bytes = bytes};
}

Buffer BufferOf(std::vector<int64_t>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size(), DataType::kInt64};
}

// Smaller than a chunk, a whole number of chunks, and more.
TEST(Mailboxes, DeliverMessagesOfEverySizeInOrder) {
  RunLocal(2, [](LocalRanks& ranks) {
    Arena arena(ranks);
    Mailboxes mailboxes(ranks, arena, Soon());
    const int other = 1 - ranks.self();
    for (const size_t count : {size_t{1}, size_t{4096}, size_t{8192}, size_t{100'003}}) {
      std::vector<int64_t> sent(count), received(count);
      std::iota(sent.begin(), sent.end(), static_cast<int64_t>(count));
      const uint64_t bytes = count * sizeof(int64_t);
      const auto send = [&] {
        mailboxes.Send(CallOfBytes(Operation::kSend, bytes, other), BufferOf(sent), other, Soon());
      };
      if (ranks.self() == 0) send();
      mailboxes.Receive(CallOfBytes(Operation::kReceive, bytes, other), BufferOf(received), other,
                        Soon());
      if (ranks.self() == 1) send();
      EXPECT_EQ(received, sent);
    }
  });
}

TEST(Mailboxes, AMessageOfAnotherSizeNamesTheSender) {
  RunLocal(2, [](LocalRanks& ranks) {
    Arena arena(ranks);
    Mailboxes mailboxes(ranks, arena, Soon());
    std::vector<int64_t> values(8);
    if (ranks.self() == 0) {
      mailboxes.Send(CallOfBytes(Operation::kSend, 64, 1), BufferOf(values), 1, Soon());
    } else {
      values.resize(4);
      const Error error = Thrown([&] {
        mailboxes.Receive(CallOfBytes(Operation::kReceive, 32, 0), BufferOf(values), 0, Soon());
      });
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.message(), ::testing::HasSubstr("rank 0 on host here"));
    }
    ranks.Leave();
  });
}

TEST(Mailboxes, AReceiverNoticesThatItsSenderLeft) {
  RunLocal(2, [](LocalRanks& ranks) {
    Arena arena(ranks);
    Mailboxes mailboxes(ranks, arena, Soon());
    if (ranks.self() == 0) return ranks.Leave();
    std::vector<int64_t> values(4);
    EXPECT_EQ(CodeOf([&] {
                mailboxes.Receive(CallOfBytes(Operation::kReceive, 32, 0), BufferOf(values), 0,
                                  Soon());
              }),
              ErrorCode::kUnavailable);
  });
}

}  // namespace
}  // namespace hearth::collective
