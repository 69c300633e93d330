// An operation as a value, for Group::Run and Queue::Submit. It owns no memory. Input and output
// must be identical or not overlap; they need not be aligned.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hearth/collective/operation/call.h"

namespace hearth::collective {

// The arguments of one operation. `count` is the number of elements of the output, except for
// reduce-scatter and send, where it counts the input. See Operation for the sizes of input and
// output.
struct Request {
  Operation operation = Operation::kBarrier;
  const void* input = nullptr;  // null: in place, at `output`
  void* output = nullptr;       // unused by send
  size_t count = 0;
  DataType type = DataType::kFloat32;
  Op op = Op::kSum;
  // All-reduce can send float32 sums and means between hosts in 16 bits. The values are summed as
  // float32 and the result is rounded once more. All ranks still get the same bits.
  Wire wire = Wire::kFloat32;
  int peer = 0;
  // Sizes of the parts of an all-gather, one per rank, the same on all ranks. If empty, the parts
  // are Part(count, ...).
  std::vector<size_t> counts = {};
  // kDevice: input and output are on the device that Group::OpenDevice opened; an all-to-all must
  // not be in place.
  Memory memory = Memory::kHost;
  // The CUDA stream that writes the device memory; null for the default stream. The operation
  // starts after the work submitted to the stream so far. The result is ready when the operation
  // returns, so no stream has to wait for it.
  void* stream = nullptr;
  // The following fields are compared between the ranks and reported in errors.
  std::string name = {};
  std::string signature = {};  // the caller's type and shape (SignatureOf); empty: not compared
  uint64_t step = 0;           // the program's step counter; see Call
  std::chrono::steady_clock::time_point submitted = {};  // set by the queue
};

// Returns the request as a Call, for comparison between ranks and for error messages.
Call CallOf(const Request& request);

}  // namespace hearth::collective
