// Chooses the device that a net or a solver thread computes on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tensor/compute_device.h"
#include "hearth/collective/group.h"

namespace hearth::trainer {

// Returns the CUDA devices of a -gpu flag: "0,2", "all", or "" for none. If the process has no CUDA
// device at all, warns and returns none. Throws kInvalidArgument for a device that does not exist.
std::vector<int> FindGpus(const std::string& flag);

// Like FindGpus, for a process with `count` devices, without the warning.
std::vector<int> ParseGpus(const std::string& flag, size_t count);

// The first device of a -gpu flag, as FindGpus returns it; the CPU if there is none.
caffe::ComputeDevice FindDevice(const std::string& flag);

// Returns the device of solver thread `index`, which is counted over the processes of a host.
// Threads are assigned round-robin to `gpus`. If that is empty and the solver's mode is GPU
// (Caffe's default), they are assigned to all CUDA devices of this process, starting at device_id.
// Without a device, returns the CPU.
caffe::ComputeDevice ChooseDevice(const std::vector<int>& gpus,
                                  const caffe::SolverParameter& solver, int index);

// Returns true if the ranks' gradients stay on their GPUs (collective::Group::OpenDevice).
// Collective over all ranks; each passes its own device. Ranks wait at most `timeout_s` for each
// other. Throws as Group::Run does.
bool OpenDevice(collective::Group& group, const caffe::ComputeDevice& device, double timeout_s);

// "GPU 0" or "CPU".
std::string NameOf(const caffe::ComputeDevice& device);

}  // namespace hearth::trainer
