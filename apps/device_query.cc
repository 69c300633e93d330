// hearth device_query
#include <fstream>
#include <string>
#include <thread>

#include "apps/caffe_flags.h"
#include "apps/commands.h"
#include "apps/cuda_devices.h"
#include "hearth/base/log.h"
#include "hearth/trainer/step/compute_devices.h"

namespace hearth::program {
namespace {

// Value of the first line of a /proc file that starts with `key`, or "".
std::string ProcValue(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t value = line.find_first_not_of(" \t:", key.size());
    return value == line.npos ? "" : line.substr(value);
  }
  return "";
}

// Instruction sets of the processor that affect the choice of compute kernels.
std::string InstructionSets() {
  const std::string flags = " " + ProcValue("/proc/cpuinfo", "flags") + " ";
  std::string found;
  for (const char* name :
       {"avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16"}) {
    if (flags.find(std::string(" ") + name + " ") != flags.npos) found += std::string(name) + " ";
  }
  return found.empty() ? "none of AVX and later" : found;
}

void LogFacts(const DeviceFacts& facts) {
  for (const auto& [what, value] : facts) log::Info("{:<31}{}", what + ":", value);
}

void LogProcessor() {
  const std::string model = ProcValue("/proc/cpuinfo", "model name");
  LogFacts({{"Processor", model.empty() ? "unknown" : model},
            {"Instruction sets", InstructionSets()},
            {"Compute threads", fmt::format("{}", std::thread::hardware_concurrency())},
            {"Total memory", ProcValue("/proc/meminfo", "MemTotal")}});
}

void QueryDevices(const std::string& gpu) {
  LogProcessor();
  const std::vector<DeviceFacts> devices = CudaDevices();
  log::Info("Querying GPUs {}", gpu.empty() ? "all" : gpu);
  if (devices.empty()) log::Info("This machine has no CUDA driver or no device.");
  for (const int id : trainer::ParseGpus(gpu.empty() ? "all" : gpu, devices.size())) {
    LogFacts(devices[static_cast<size_t>(id)]);
  }
}

}  // namespace

void AddDeviceQuery(CLI::App* app) {
  CLI::App* query = app->add_subcommand("device_query", "describe the processor and the GPUs");
  const auto options = AddCaffeFlags(query, {"gpu"});
  query->callback([options] { QueryDevices(options->gpu); });
}

}  // namespace hearth::program
