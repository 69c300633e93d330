// Runs against the stand-in for the CUDA driver.
#include "hearth/collective/device/device_stream.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <future>
#include <thread>

#include "hearth/base/socket.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/collective/testing/device_testing.h"

namespace hearth::collective {
namespace {

cuda::Context* CurrentDevice() {
  cuda::Context* context = nullptr;
  cuda::Library().Get().get_current(&context);
  return context;
}

// Work that blocks a stream until Open() is called.
class BlockedWork {
 public:
  explicit BlockedWork(cuda::Stream* stream) {
    StandIn::Get().launch(
        stream, [](void* gate) { static_cast<BlockedWork*>(gate)->opened_.get_future().wait(); },
        this);
  }
  void Open() { opened_.set_value(); }

 private:
  std::promise<void> opened_;
};

bool DoneSoon(DeviceStream& stream) {
  const Deadline deadline = Soon();
  while (!stream.Done()) {
    if (!PollOne(stream.fd(), POLLIN, deadline)) return false;
  }
  return true;
}

TEST(DeviceStreamTest, IsDoneOnceAllWorkBeforeTheMarkIs) {
  DeviceStream stream(0);
  BlockedWork first(stream.get()), second(stream.get());
  stream.Mark();
  EXPECT_FALSE(stream.Done());
  first.Open();
  EXPECT_FALSE(stream.Done());
  second.Open();
  EXPECT_TRUE(DoneSoon(stream));
  EXPECT_TRUE(stream.Done()) << "until the next mark";
  BlockedWork third(stream.get());
  stream.Mark();
  EXPECT_FALSE(stream.Done());
  third.Open();
  EXPECT_TRUE(DoneSoon(stream));
}

TEST(DeviceStreamTest, WaitsForEarlierWorkOfAnotherStream) {
  DeviceStream stream(0), other(0);
  BlockedWork gate(other.get());
  stream.WaitFor(other.get());
  stream.Mark();
  EXPECT_FALSE(stream.Done());
  gate.Open();
  EXPECT_TRUE(DoneSoon(stream));
}

TEST(DeviceStreamTest, TheThreadsDeviceIsCurrentAgainAfterAUse) {
  const cuda::Api& api = cuda::Library().Get();
  cuda::Context* own = nullptr;
  api.retain(&own, 5);
  api.set_current(own);
  {
    const DeviceStream stream(2);
    EXPECT_EQ(CurrentDevice(), own);
    {
      const DeviceStream::Use use(stream);
      cuda::Context* used = nullptr;
      api.retain(&used, 2);
      EXPECT_EQ(CurrentDevice(), used);
    }
    EXPECT_EQ(CurrentDevice(), own);
  }
  EXPECT_EQ(CurrentDevice(), own);
  api.set_current(nullptr);
}

// Ten rounds, because the thread of a stream of the previous test may still be running.
TEST(DeviceStreamTest, EndsItsStreamWithItself) {
  const int before = StandIn::Get().streams();
  for (int i = 0; i < 10; ++i) const DeviceStream stream(0);
  // Like CUDA, the stand-in ends a stream slightly after the call that destroys the stream.
  const Deadline deadline = Soon();
  while (StandIn::Get().streams() > before && !deadline.expired()) std::this_thread::yield();
  EXPECT_LE(StandIn::Get().streams(), before);
}

TEST(DeviceStreamTest, RejectsADeviceThatDoesNotExist) {
  const Error error = Thrown([] { DeviceStream stream(99); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(), "CUDA cannot find the device: invalid argument");
}

}  // namespace
}  // namespace hearth::collective
