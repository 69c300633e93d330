#include "hearth/caffe/data/hdf5_library.h"

#include <gmock/gmock.h>
#include <hdf5.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hearth/base/thread.h"

namespace hearth::caffe {
namespace {

using testing::StartsWith;

hid_t OpenMissing() { return H5Fopen("/nowhere/a.h5", H5F_ACC_RDONLY, H5P_DEFAULT); }

TEST(Hdf5Library, GivesTheReasonOfAFailedCallInsteadOfPrintingIt) {
  testing::internal::CaptureStderr();
  std::string reason;
  {
    const Hdf5Lock lock;
    EXPECT_LT(OpenMissing(), 0);
    reason = Hdf5Reason();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(reason, StartsWith(": "));
  EXPECT_GT(reason.size(), 5U);
}

TEST(Hdf5Library, HasNoReasonWithoutAFailure) {
  const Hdf5Lock lock;
  const hid_t type = H5Tcopy(H5T_NATIVE_FLOAT);  // clears earlier errors
  EXPECT_EQ(Hdf5Reason(), "");
  H5Tclose(type);
}

// Error output must be off in every thread, and two threads must never use the library at once.
TEST(Hdf5Library, OneThreadUsesItAtATime) {
  testing::internal::CaptureStderr();
  int users = 0, most = 0;
  std::vector<Thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back("hdf5", [&] {
      for (int call = 0; call < 200; ++call) {
        const Hdf5Lock lock;
        most = std::max(most, ++users);
        EXPECT_LT(OpenMissing(), 0);
        --users;
      }
    });
  }
  for (Thread& thread : threads) thread.Join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace hearth::caffe
