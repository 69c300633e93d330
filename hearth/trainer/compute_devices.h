// Which device a net or a solver thread computes on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hearth/caffe/net/compute_device.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/collective/group.h"

namespace hearth::trainer {

// The CUDA devices that a -gpu flag names: "0,2", "all", none for "". Warns and gives none if the
// process has no CUDA device at all. Throws kInvalidArgument for one that is not there.
std::vector<int> FindGpus(const std::string& flag);

// The same for any list of `count` devices, without the warning.
std::vector<int> ParseGpus(const std::string& flag, size_t count);

// The first device that a -gpu flag names, as FindGpus; the CPU where it names none.
caffe::ComputeDevice FindDevice(const std::string& flag);

// The device of solver thread `index`, counted over the processes of a host. Threads take turns
// with `gpus`; if that is empty and the solver's mode is GPU (Caffe's default), with all CUDA
// devices of this process, from device_id on. The CPU if there is none.
caffe::ComputeDevice ChooseDevice(const std::vector<int>& gpus,
                                  const caffe::SolverParameter& solver, int index);

// Whether the ranks' gradients stay on their GPUs (collective::Group::OpenDevice): all ranks call
// it together, each with its own device, and must wait no longer than `timeout_s` for each other.
bool OpenDevice(collective::Group& group, const caffe::ComputeDevice& device, double timeout_s);

// "GPU 0" or "CPU".
std::string NameOf(const caffe::ComputeDevice& device);

}  // namespace hearth::trainer
