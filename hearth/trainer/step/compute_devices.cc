#include "hearth/trainer/step/compute_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <sstream>

#include "hearth/base/error.h"
#include "hearth/base/log.h"

namespace hearth::trainer {

std::vector<int> ParseGpus(const std::string& flag, size_t count) {
  std::vector<int> gpus;
  if (flag == "all") {
    gpus.resize(count);
    std::iota(gpus.begin(), gpus.end(), 0);
    return gpus;
  }
  std::istringstream words(flag);
  for (std::string word; std::getline(words, word, ',');) {
    size_t gpu = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), gpu);
    Require(error == std::errc() && end == word.data() + word.size() && gpu < count,
            ErrorCode::kInvalidArgument, "-gpu {}: no device \"{}\"; this machine has {}", flag,
            word, count);
    gpus.push_back(static_cast<int>(gpu));
  }
  return gpus;
}

std::vector<int> FindGpus(const std::string& flag) {
  if (flag.empty()) return {};
  const size_t count = caffe::CountCudaDevices();
  if (count > 0) return ParseGpus(flag, count);
  // This is not an error, because scripts for Caffe pass -gpu even on machines without a driver.
  log::Warning("-gpu {}: no CUDA device is available to this process; using the CPU", flag);
  return {};
}

caffe::ComputeDevice FindDevice(const std::string& flag) {
  const std::vector<int> gpus = FindGpus(flag);
  return gpus.empty() ? caffe::ComputeDevice{} : caffe::CudaDevice(static_cast<size_t>(gpus[0]));
}

caffe::ComputeDevice ChooseDevice(const std::vector<int>& gpus,
                                  const caffe::SolverParameter& solver, int index) {
  // Devices are assigned round-robin, so that threads share them evenly if there are more threads
  // than devices.
  const auto turn = static_cast<size_t>(index);
  if (!gpus.empty()) return caffe::CudaDevice(static_cast<size_t>(gpus[turn % gpus.size()]));
  if (solver.solver_mode() != caffe::SolverParameter::GPU) return {};
  const size_t count = caffe::CountCudaDevices();
  if (count == 0) return {};
  return caffe::CudaDevice((static_cast<size_t>(std::max(0, solver.device_id())) + turn) % count);
}

bool OpenDevice(collective::Group& group, const caffe::ComputeDevice& device, double timeout_s) {
  // All simulated devices are the CPU, so the rank's index on its host replaces the device index.
  const int own =
      device.device.is_cpu() ? group.host_index() : static_cast<int>(device.device.index);
  return group.OpenDevice(device.separate ? own : -1, Deadline::After(timeout_s));
}

std::string NameOf(const caffe::ComputeDevice& device) {
  return device.separate ? fmt::format("GPU {}", std::max<int>(0, device.device.index)) : "CPU";
}

}  // namespace hearth::trainer
