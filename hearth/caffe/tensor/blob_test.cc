#include "hearth/caffe/tensor/blob.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "hearth/base/error.h"
#include "hearth/caffe/tensor/shape_count.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

TEST(Blob, KeepsItsMemoryWhenItShrinksAndGrowsBack) {
  Blob blob({4, 3});
  float* memory = blob.data_ptr();
  blob.Reshape({2, 3});
  EXPECT_EQ(blob.data_ptr(), memory);
  EXPECT_EQ(blob.data().sizes(), (std::vector<int64_t>{2, 3}));
  blob.Reshape({4, 3});
  EXPECT_EQ(blob.data_ptr(), memory);
}

TEST(Blob, StartsWithZeros) {
  Blob blob({5});
  EXPECT_FALSE(blob.has_diff());
  EXPECT_EQ(TotalOf(blob.diff()), 0.0f);
  EXPECT_TRUE(blob.has_diff());
}

TEST(Blob, HasOneValueWithoutAxes) {
  Blob blob{Shape{}};
  EXPECT_EQ(blob.count(), 1);
  EXPECT_EQ(blob.data().dim(), 0);
  EXPECT_EQ(blob.ShapeString(), "(1)");
}

TEST(Blob, CountsRangesOfDimensions) {
  const Blob blob({2, 3, 4, 5});
  EXPECT_EQ(blob.count(1), 60);
  EXPECT_EQ(blob.count(1, 3), 12);
  EXPECT_EQ(blob.shape(-1), 5);
  EXPECT_EQ(blob.ShapeString(), "2 3 4 5 (120)");
  EXPECT_THROW(blob.shape(4), Error);
  EXPECT_THROW(blob.shape(-5), Error);
}

TEST(Blob, RejectsImpossibleShapes) {
  EXPECT_THROW(Blob({2, -1}), Error);
  EXPECT_THROW(Blob({1ll << 40, 1ll << 40}), Error);
  EXPECT_THROW(Blob({0, 1ll << 40}), Error);
}

std::string ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    return error.message();
  }
  return "nothing was thrown";
}

TEST(Blob, NamesItsShapeIfItIsTooLarge) {
  EXPECT_EQ(ErrorOf([] {
              Blob({3, 2000000000});
            }),
            "a blob of shape [3, 2000000000] is larger than the limit of 2147483647 values");
  EXPECT_EQ(Blob({1, kMaxBlobValues}).count(), kMaxBlobValues);
}

// Limits this process's memory while the object exists.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    std::ifstream status("/proc/self/statm");
    rlim_t pages = 0;
    status >> pages;
    const rlimit limit = {pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes,
                          before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

TEST(Blob, NamesItsShapeIfMemoryIsExhausted) {
  Blob blob({1000, 1000, 1000}), diff({1000, 1000, 1000}), read({1000, 1000, 1000});
  const MemoryLimit limit(rlim_t{1} << 30);
  const std::string said =
      "out of memory: a blob of shape 1000 1000 1000 (1000000000) takes 3814 MB";
  EXPECT_EQ(ErrorOf([&] { blob.data(); }), said);
  EXPECT_EQ(ErrorOf([&] { diff.device_diff(); }), said);
  EXPECT_EQ(ErrorOf([&] { read.read_data(); }), said);
}

TEST(Blob, SharesMemoryUnderAnotherShape) {
  Blob a({2, 3}), b({6});
  b.ShareData(a);
  b.ShareDiff(a);
  EXPECT_EQ(a.data_ptr(), b.data_ptr());
  EXPECT_EQ(a.diff_ptr(), b.diff_ptr());
  Blob c({5});
  EXPECT_THROW(c.ShareData(a), Error);
}

TEST(Blob, CanUseAnExternalArena) {
  Tensor arena = Tensor::Zeros({10});
  Blob blob({2, 2});
  blob.BindDiff(arena.narrow(0, 3, 4));
  blob.diff().fill_(1);
  EXPECT_EQ(TotalOf(arena), 4.0f);
  EXPECT_EQ(blob.diff_ptr(), arena.data_ptr() + 3);
  EXPECT_THROW(blob.BindDiff(arena.narrow(0, 0, 3)), Error);
}

}  // namespace
}  // namespace hearth::caffe
