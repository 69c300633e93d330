#include "hearth/caffe/data/hdf5_trial.h"

#include <gmock/gmock.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "hearth/base/error.h"
#include "hearth/base/testing/error_testing.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The error when `open`, which runs in the child, misbehaves.
Error TrialOf(const std::function<Hdf5File()>& open) {
  return Thrown([&] { TryHdf5("a.h5", "", 1, open); });
}

Hdf5File EndBy(int number) {
  ::raise(number);
  return Hdf5File::InMemory();
}

TEST(Hdf5Trial, ACrashIsDamageAndAKillIsNot) {
  const Error crash = TrialOf([] { return EndBy(SIGSEGV); });
  EXPECT_EQ(crash.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(crash.message(),
              HasSubstr("a.h5 is damaged: the HDF5 library was killed by signal 11"));
  const Error kill = TrialOf([] { return EndBy(SIGKILL); });
  EXPECT_EQ(kill.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(kill.message(), HasSubstr("signal 9 (Killed)), as the system does when memory runs"));
}

herr_t Crash(hid_t, hid_t, H5T_cdata_t* conversion, size_t, size_t, size_t, void*, void*, hid_t) {
  if (conversion->command == H5T_CONV_CONV) ::raise(SIGSEGV);
  return 0;
}

// Limits this process to almost no more memory.
void TakeAllMemory() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + (8 << 20);
  const rlimit limit = {bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
}

TEST(Hdf5Trial, AnObjectThatNeedsTooMuchMemoryDoesNotHideTheRest) {
  const std::string path = testing::TempDir() + "hearth_hdf5_trial_test.h5";
  {
    Hdf5File file = Hdf5File::Create(path);
    const std::vector<float> values(size_t{16} << 20);
    file.WriteFloats("/a", {static_cast<int64_t>(values.size())}, values.data());
    file.WriteInt("/b", 1);
  }
  const auto open = [&] {
    Hdf5File file = Hdf5File::Open(path);
    // The last dataset crashes.
    H5Tregister(H5T_PERS_HARD, "crash", H5T_NATIVE_INT, H5T_NATIVE_FLOAT, Crash);
    TakeAllMemory();
    return file;
  };
  EXPECT_EQ(TrialOf(open).code(), ErrorCode::kDataLoss);
  fs::remove(path);
}

}  // namespace
}  // namespace hearth::caffe
