#include "hearth/collective/transport/rdma_device.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "hearth/collective/transport/ucx_api.h"

namespace hearth::collective {
namespace {

// A directory like /sys/class/infiniband.
class RdmaDevices : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void AddPort(const std::string& device, const std::string& port, const std::string& state) {
    const auto path = folder_ / device / "ports" / port;
    std::filesystem::create_directories(path);
    std::ofstream(path / "state") << state << "\n";
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("hearth_rdma_" + std::to_string(::getpid()));
};

TEST_F(RdmaDevices, AHostWithoutADeviceIsReported) {
  const RdmaDevice device = FindRdmaDevice(folder_.string());
  EXPECT_EQ(device.name, "");
  EXPECT_EQ(device.missing, "no device in " + folder_.string());
}

TEST_F(RdmaDevices, APortThatIsDownIsNotUsed) {
  AddPort("mlx5_0", "1", "1: DOWN");
  AddPort("mlx5_1", "1", "2: INIT");
  const RdmaDevice device = FindRdmaDevice(folder_.string());
  EXPECT_EQ(device.name, "");
  EXPECT_EQ(device.missing, "no port of mlx5_0, mlx5_1 in " + folder_.string() + " is active");
}

TEST_F(RdmaDevices, TheFirstActivePortIsNamed) {
  if (const std::string reason = ucx::Library().problem; !reason.empty()) GTEST_SKIP() << reason;
  AddPort("mlx5_0", "1", "1: DOWN");
  AddPort("mlx5_1", "1", "1: DOWN");
  AddPort("mlx5_1", "2", "4: ACTIVE");
  const RdmaDevice device = FindRdmaDevice(folder_.string());
  EXPECT_EQ(device.name, "mlx5_1:2");
  EXPECT_EQ(device.missing, "");
}

}  // namespace
}  // namespace hearth::collective
