// Chooses the device that a net or a solver thread computes on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tensor/compute_device.h"
#include "hearth/collective/group.h"

namespace hearth::trainer {

// The CUDA devices of a -gpu flag: "0,2", "all", or "" for none. If the process has no CUDA device
// at all, warns and returns none. Throws kInvalidArgument for a device that does not exist.
std::vector<int> FindGpus(const std::string& flag);

// The same for a given number of devices, without the warning.
std::vector<int> ParseGpus(const std::string& flag, size_t count);

// The first device of a -gpu flag, as FindGpus returns it; the CPU if there is none.
caffe::ComputeDevice FindDevice(const std::string& flag);

// The device of solver thread `index`, counted over the processes of a host. Threads take turns
// with `gpus`; if that is empty and the solver's mode is GPU (Caffe's default), with all CUDA
// devices of this process, starting at device_id. The CPU if there is none.
caffe::ComputeDevice ChooseDevice(const std::vector<int>& gpus,
                                  const caffe::SolverParameter& solver, int index);

// Returns true if the ranks' gradients stay on their GPUs (collective::Group::OpenDevice).
// Collective over all ranks, each with its own device; they wait at most `timeout_s` for each
// other. Throws as Group::Run does.
bool OpenDevice(collective::Group& group, const caffe::ComputeDevice& device, double timeout_s);

// "GPU 0" or "CPU".
std::string NameOf(const caffe::ComputeDevice& device);

}  // namespace hearth::trainer
