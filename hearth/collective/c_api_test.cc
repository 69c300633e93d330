// Tests the C interface of a queue as a plug-in uses it.
#include "hearth/collective/c_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "hearth/collective/queue_c_api.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The result passed to `done`.
struct Completion {
  std::promise<std::pair<hearth_result, std::string>> promise;

  static void Done(void* self, hearth_result result, const char* message) {
    static_cast<Completion*>(self)->promise.set_value({result, message});
  }
};

std::pair<hearth_result, std::string> Carried(const hearth_collective* api,
                                              const hearth_operation& operation) {
  Completion completion;
  api->submit(api->self, &operation, &Completion::Done, &completion);
  return completion.promise.get_future().get();
}

template <typename T>
hearth_operation On(hearth_operation_kind kind, hearth_data_type type, std::vector<T>& output) {
  hearth_operation operation = {};
  operation.kind = kind;
  operation.type = type;
  operation.output = output.data();
  operation.count = output.size();
  return operation;
}

TEST(CApi, RunsEachOperationWithEachTypeAndReduction) {
  RunGroups(Wiring::kThreads, 2, [](Group& group) {
    Queue queue(group);
    const QueueCApi own(queue, group.rank(), group.world());
    const hearth_collective* api = own.get();
    EXPECT_EQ(api->world, 2);
    const auto rank = static_cast<float>(api->rank);

    const std::vector<std::pair<hearth_reduction, float>> reductions = {
        {HEARTH_SUM, 5}, {HEARTH_MEAN, 2.5}, {HEARTH_MIN, 2}, {HEARTH_MAX, 3}};
    for (const auto& [reduction, expected] : reductions) {
      const std::vector<float> input = {rank + 2};
      std::vector<float> output(1);
      hearth_operation asked = On(HEARTH_ALL_REDUCE, HEARTH_FLOAT32, output);
      asked.input = input.data();
      asked.reduction = reduction;
      EXPECT_EQ(Carried(api, asked).first, HEARTH_DONE);
      EXPECT_THAT(output, ElementsAre(expected));
    }
    std::vector<int64_t> wide = {int64_t{1} << 40};
    EXPECT_EQ(Carried(api, On(HEARTH_ALL_REDUCE, HEARTH_INT64, wide)).first, HEARTH_DONE);
    EXPECT_THAT(wide, ElementsAre(int64_t{1} << 41));
    std::vector<double> doubles = {0.25};
    EXPECT_EQ(Carried(api, On(HEARTH_ALL_REDUCE, HEARTH_FLOAT64, doubles)).first, HEARTH_DONE);
    EXPECT_THAT(doubles, ElementsAre(0.5));
    std::vector<uint16_t> halves = {0x3C00};  // 1 as float16
    EXPECT_EQ(Carried(api, On(HEARTH_ALL_REDUCE, HEARTH_FLOAT16, halves)).first, HEARTH_DONE);
    EXPECT_THAT(halves, ElementsAre(0x4000));
    std::vector<uint16_t> brains = {0x3F80};  // 1 as bfloat16
    EXPECT_EQ(Carried(api, On(HEARTH_ALL_REDUCE, HEARTH_BFLOAT16, brains)).first, HEARTH_DONE);
    EXPECT_THAT(brains, ElementsAre(0x4000));

    const std::vector<int32_t> part(static_cast<size_t>(api->rank) + 1, api->rank + 7);
    const std::vector<size_t> counts = {1, 2};
    std::vector<int32_t> gathered(3);
    hearth_operation gather = On(HEARTH_ALL_GATHER, HEARTH_INT32, gathered);
    gather.input = part.data();
    gather.counts = counts.data();
    EXPECT_EQ(Carried(api, gather).first, HEARTH_DONE);
    EXPECT_THAT(gathered, ElementsAre(7, 8, 8));

    std::vector<uint8_t> shown = {static_cast<uint8_t>(api->rank)};
    hearth_operation broadcast = On(HEARTH_BROADCAST, HEARTH_UINT8, shown);
    broadcast.root = 1;
    EXPECT_EQ(Carried(api, broadcast).first, HEARTH_DONE);
    EXPECT_THAT(shown, ElementsAre(1));
  });
}

TEST(CApi, InvalidOperationsAreRejectedAndTheQueueContinues) {
  RunGroups(Wiring::kThreads, 1, [](Group& group) {
    Queue queue(group);
    const QueueCApi own(queue, group.rank(), group.world());
    std::vector<float> data = {1};
    hearth_operation asked = On(HEARTH_ALL_REDUCE, HEARTH_FLOAT32, data);
    asked.type = static_cast<hearth_data_type>(99);
    const auto [result, message] = Carried(own.get(), asked);
    EXPECT_EQ(result, HEARTH_INVALID);
    EXPECT_THAT(message, HasSubstr("99 is not a data type"));
    EXPECT_EQ(Carried(own.get(), On(HEARTH_ALL_REDUCE, HEARTH_FLOAT32, data)).first, HEARTH_DONE);
  });
}

TEST(CApi, NamesTheRankThatMadeAnotherCall) {
  RunGroups(Wiring::kThreads, 2, [](Group& group) {
    Queue queue(group);
    const QueueCApi own(queue, group.rank(), group.world());
    std::vector<float> data(group.rank() == 0 ? 4 : 5);
    hearth_operation asked = On(HEARTH_ALL_REDUCE, HEARTH_FLOAT32, data);
    asked.name = "conv1";
    const auto [result, message] = Carried(own.get(), asked);
    if (result == HEARTH_UNAVAILABLE) return;  // the other rank saw the mismatch first
    EXPECT_EQ(result, HEARTH_INVALID);
    EXPECT_THAT(message, AllOf(HasSubstr("'conv1' of 16 bytes"), HasSubstr("of 20 bytes")));
  });
}

TEST(CApi, NamesTheRankWithAnotherShapeTypeOrStep) {
  const std::array<int64_t, 2> wide = {2, 3};
  const std::array<int64_t, 2> tall = {3, 2};
  struct Case {
    const int64_t* shape;
    const char* type;
    uint64_t step;
    const char* expected;
  };
  for (const Case& each :
       {Case{tall.data(), nullptr, 4, "int32[3, 2]"},
        Case{wide.data(), "uint32", 4, "uint32[2, 3]"}, Case{wide.data(), nullptr, 5, "step 5"}}) {
    std::vector<std::string> messages(2);
    RunGroups(Wiring::kThreads, 2, [&](Group& group) {
      Queue queue(group);
      const QueueCApi own(queue, group.rank(), group.world());
      std::vector<int32_t> data(6);
      hearth_operation asked = On(HEARTH_BROADCAST, HEARTH_INT32, data);
      asked.shape = wide.data();
      asked.dims = 2;
      asked.step = 4;
      if (group.rank() == 1) {
        asked.shape = each.shape;
        asked.type_name = each.type;
        asked.step = each.step;
      }
      const auto [result, message] = Carried(own.get(), asked);
      if (result == HEARTH_INVALID) messages[static_cast<size_t>(group.rank())] = message;
    });
    EXPECT_THAT(messages,
                ::testing::Contains(AllOf(HasSubstr("int32[2, 3]"), HasSubstr(each.expected))));
  }
}

TEST(CApi, EveryOperationCompletesOnceWhenARankLeavesAndTheQueueCloses) {
  RunGroups(Wiring::kThreads, 2, [](Group& group) {
    if (group.rank() == 1) return;
    Completion first;
    Completion second;
    std::vector<float> data(4);
    {
      Queue queue(group);
      const QueueCApi own(queue, group.rank(), group.world());
      hearth_operation asked = On(HEARTH_ALL_REDUCE, HEARTH_FLOAT32, data);
      own.get()->submit(own.get()->self, &asked, &Completion::Done, &first);
      own.get()->submit(own.get()->self, &asked, &Completion::Done, &second);
    }
    EXPECT_NE(first.promise.get_future().get().first, HEARTH_DONE);
    EXPECT_NE(second.promise.get_future().get().first, HEARTH_DONE);
  });
}

}  // namespace
}  // namespace hearth::collective
