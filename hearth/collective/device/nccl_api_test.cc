// Compares our declarations with NCCL's header, if PyTorch's CUDA wheel is installed.
#include "hearth/collective/device/nccl_api.h"

#include <gtest/gtest.h>

#if __has_include(<nccl.h>)
#include <nccl.h>

#include <cstddef>

namespace hearth::collective::nccl {
namespace {

static_assert(ncclSuccess == kSuccess && ncclInProgress == kInProgress);
static_assert(sizeof(ncclUniqueId) == sizeof(UniqueId) && alignof(UniqueId) == 1);

static_assert(offsetof(ncclConfig_t, size) == offsetof(Config, size));
static_assert(offsetof(ncclConfig_t, magic) == offsetof(Config, magic));
static_assert(offsetof(ncclConfig_t, version) == offsetof(Config, version));
static_assert(offsetof(ncclConfig_t, blocking) == offsetof(Config, blocking));
static_assert(NCCL_API_MAGIC == Config::kMagic && NCCL_VERSION(2, 14, 0) == Config::kVersion);

static_assert(int{ncclUint8} == kUint8 && int{ncclInt32} == kInt32 && int{ncclInt64} == kInt64);
static_assert(int{ncclFloat16} == kFloat16 && int{ncclBfloat16} == kBfloat16);
static_assert(int{ncclFloat32} == kFloat32 && int{ncclFloat64} == kFloat64);
static_assert(int{ncclSum} == kSum && int{ncclMax} == kMax && int{ncclMin} == kMin);
static_assert(int{ncclAvg} == kMean);

}  // namespace
}  // namespace hearth::collective::nccl
#endif

namespace hearth::collective::nccl {
namespace {

TEST(NcclLibrary, HasAllFunctionsAndAVersion) {
  if (const std::string reason = Library().problem; !reason.empty()) GTEST_SKIP() << reason;
  EXPECT_EQ(Version().substr(0, 2), "2.");
}

}  // namespace
}  // namespace hearth::collective::nccl
