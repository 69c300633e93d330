// An operation as a value, for Group::Run and Queue::Submit. It owns no memory; input and output
// are identical or do not overlap, and need not be aligned.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hearth/collective/operation/call.h"

namespace hearth::collective {

// `count` is that of the output, except for reduce-scatter and send, where it is the input's. See
// Operation for the sizes of input and output.
struct Request {
  Operation operation = Operation::kBarrier;
  const void* input = nullptr;  // null: in place, at `output`
  void* output = nullptr;       // unused by send
  size_t count = 0;
  DataType type = DataType::kFloat32;
  Op op = Op::kSum;
  // Float32 sums and means of all-reduce may be sent between hosts in 16 bits; they are summed as
  // float32 and rounded once more at the end. All ranks still get the same bits.
  Wire wire = Wire::kFloat32;
  int peer = 0;
  // Unequal parts of an all-gather, one per rank, the same on all ranks; empty: Part(count, ...).
  std::vector<size_t> counts = {};
  // kDevice: input and output are on the device that Group::OpenDevice opened; an all-to-all has
  // both.
  Memory memory = Memory::kHost;
  // The CUDA stream that wrote the device memory, or null for the default stream: the operation
  // starts after the work submitted to it so far. After the operation no stream has to wait.
  void* stream = nullptr;
  // The following fields are compared between the ranks and reported in errors.
  std::string name = {};
  std::string signature = {};  // the caller's type and shape (SignatureOf); empty: not compared
  uint64_t step = 0;           // the program's step counter; see Call
  std::chrono::steady_clock::time_point submitted = {};  // set by the queue
};

// The request as a call, for comparison between ranks and for messages.
Call CallOf(const Request& request);

}  // namespace hearth::collective
