#include "hearth/collective/operation/call.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "hearth/collective/operation/call_header.h"

namespace hearth::collective {
namespace {

TEST(Call, DescribesOperations) {
  EXPECT_EQ((Call{.operation = Operation::kAllReduce, .bytes = 40}).Describe(),
            "all-reduce of 40 bytes (float32, sum)");
  EXPECT_EQ(
      (Call{.operation = Operation::kAllReduce, .wire = Wire::kBfloat16, .bytes = 40}).Describe(),
      "all-reduce of 40 bytes (float32, sum, bfloat16 on the wire)");
  EXPECT_EQ((Call{.operation = Operation::kReduceScatter, .op = Op::kMean, .bytes = 4}).Describe(),
            "reduce-scatter of 4 bytes (float32, mean)");
  EXPECT_EQ((Call{.operation = Operation::kAllGather, .digest = 31}).Describe(),
            "all-gather of 0 bytes (float32, digest 1f)");
  EXPECT_EQ((Call{.operation = Operation::kAllToAll, .type = DataType::kBool}).Describe(),
            "all-to-all of 0 bytes (bool)");
  EXPECT_EQ((Call{.operation = Operation::kBroadcast, .root = 2, .bytes = 1}).Describe(),
            "broadcast of 1 bytes (float32, from rank 2)");
  EXPECT_EQ((Call{.operation = Operation::kSend, .root = 2, .bytes = 1}).Describe(),
            "send of 1 bytes (float32, to rank 2)");
  EXPECT_EQ((Call{.operation = Operation::kAllocate, .bytes = 9}).Describe(),
            "allocation of 9 bytes");
  EXPECT_EQ(Call{}.Describe(), "barrier");
  Call call = {.operation = Operation::kAllReduce, .bytes = 24, .step = 7};
  call.SetSignature(SignatureOf("float32", std::array<int64_t, 2>{2, 3}));
  EXPECT_EQ(call.Describe(), "all-reduce of 24 bytes (float32[2, 3], sum, step 7)");
  EXPECT_EQ(SignatureOf("int16", {}), "int16[]");
}

TEST(Call, ALongFormIsTruncatedButStillCompared) {
  Call one;
  Call other;
  one.SetSignature(SignatureOf("float32", std::vector<int64_t>{1000, 1000, 1000, 1000, 2, 3}));
  other.SetSignature(SignatureOf("float32", std::vector<int64_t>{1000, 1000, 1000, 1000, 3, 2}));
  EXPECT_EQ(one.signature, other.signature);
  EXPECT_NE(one, other);
}

TEST(Call, ALongNameIsTruncatedButStillCompared) {
  Call one;
  Call other;
  one.SetName(std::string(50, 'a').append("1"));
  other.SetName(std::string(50, 'a').append("2"));
  EXPECT_EQ(one.name, other.name);
  EXPECT_NE(one, other);
  EXPECT_EQ(one.Describe().find("barrier '" + std::string(one.name.size(), 'a') + "' (digest "),
            0U);
}

// The first call, and for each field a call that differs from the first one only in that field.
std::vector<Call> Different() {
  const Call call = {.operation = Operation::kBroadcast, .bytes = 40};
  std::vector<Call> calls(12, call);
  calls[1].operation = Operation::kAllReduce;
  calls[2].type = DataType::kInt32;
  calls[3].op = Op::kMax;
  calls[4].root = 1;
  calls[5].bytes = 44;
  calls[6].wire = Wire::kFloat16;
  calls[7].digest = 1;
  calls[8].SetName("conv1");
  calls[9].memory = Memory::kDevice;
  calls[10].step = 1;
  calls[11].SetSignature("float32[10]");
  return calls;
}

TEST(CallHeader, DiffersWhereverTheCallsDo) {
  const std::vector<Call> calls = Different();
  EXPECT_EQ(CallHeader(calls[0], 3), CallHeader(calls[0], 3));
  EXPECT_NE(CallHeader(calls[0], 3), CallHeader(calls[0], 4)) << "another operation";
  for (size_t i = 1; i < calls.size(); ++i) {
    EXPECT_NE(CallHeader(calls[0], 3), CallHeader(calls[i], 3)) << i;
    EXPECT_NE(calls[0], calls[i]) << i;
    EXPECT_NE(calls[0].Fingerprint(), calls[i].Fingerprint()) << i;
  }
}

TEST(CallHeader, DescribesAnUnknownOperation) {
  CallHeader header;
  header.call.operation = static_cast<Operation>(200);
  EXPECT_EQ(header.Describe(), "unknown operation of 0 bytes");
}

}  // namespace
}  // namespace hearth::collective
