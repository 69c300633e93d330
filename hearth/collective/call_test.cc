#include "hearth/collective/call.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "hearth/collective/call_header.h"

namespace hearth::collective {
namespace {

TEST(Call, SaysWhatItDoes) {
  EXPECT_EQ((Call{.operation = Operation::kAllReduce, .bytes = 40}).Describe(),
            "all-reduce of 40 bytes");
  EXPECT_EQ((Call{.operation = Operation::kReduceScatter, .bytes = 4}).Describe(),
            "reduce-scatter of 4 bytes");
  EXPECT_EQ((Call{.operation = Operation::kAllGather, .bytes = 0}).Describe(),
            "all-gather of 0 bytes");
  EXPECT_EQ((Call{.operation = Operation::kBroadcast, .bytes = 1}).Describe(),
            "broadcast of 1 bytes");
  EXPECT_EQ((Call{.operation = Operation::kAllocate, .bytes = 9}).Describe(),
            "allocation of 9 bytes");
  EXPECT_EQ(Call{}.Describe(), "barrier");
}

// One call for each field in which it may differ from the first.
std::vector<Call> Different() {
  const Call call = {Operation::kBroadcast, DataType::kFloat32, Op::kSum, 0, 40, 0};
  std::vector<Call> calls(6, call);
  calls[1].operation = Operation::kAllReduce;
  calls[2].type = DataType::kInt32;
  calls[3].op = Op::kMax;
  calls[4].root = 1;
  calls[5].bytes = 44;
  return calls;
}

TEST(CallHeader, DiffersWhereverTheCallsDo) {
  const std::vector<Call> calls = Different();
  EXPECT_EQ(CallHeader(calls[0], 3), CallHeader(calls[0], 3));
  EXPECT_NE(CallHeader(calls[0], 3), CallHeader(calls[0], 4)) << "another operation";
  for (size_t i = 1; i < calls.size(); ++i) {
    EXPECT_NE(CallHeader(calls[0], 3), CallHeader(calls[i], 3)) << i;
    EXPECT_NE(calls[0], calls[i]) << i;
  }
}

TEST(CallHeader, OfAnUnknownOperationCanBeSaid) {
  CallHeader header;
  header.operation = 200;
  EXPECT_EQ(header.Describe(), "unknown operation of 0 bytes");
}

}  // namespace
}  // namespace hearth::collective
