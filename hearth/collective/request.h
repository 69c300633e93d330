// One operation as a value: what Group::Run carries out now and Queue::Submit later. It owns no
// memory; input and output are the same place or do not overlap, and need not be aligned.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hearth/collective/call.h"

namespace hearth::collective {

// `count` is that of the whole: of the output, but of reduce-scatter's input and of what is sent.
//   all-reduce      input and output have `count` elements
//   reduce-scatter  input has `count`, output the own part; in place the part stays where it is
//   all-gather      input is the own part, output has `count`; in place the part is there already
//   all-to-all      both have `count`, a multiple of the ranks: block r goes to, comes from rank r
//   broadcast       from `peer`; others ignore their input
//   send, receive   to or from `peer`, which does the other; not ordered with the other ranks
struct Request {
  Operation operation = Operation::kBarrier;
  const void* input = nullptr;  // null: in place, at `output`
  void* output = nullptr;       // unused by send
  size_t count = 0;
  DataType type = DataType::kFloat32;
  Op op = Op::kSum;
  // Float32 sums and means of all-reduce may travel between hosts in 16 bits; they are added as
  // float32 and rounded once more at the end. All ranks still end with the same bits.
  Wire wire = Wire::kFloat32;
  int peer = 0;
  // Unequal parts of an all-gather, one per rank, the same on all ranks; empty: Part(count, ...).
  std::vector<size_t> counts = {};
  // kDevice: input and output are in the memory of the device that Group::OpenDevice opened, and an
  // all-to-all has both.
  Memory memory = Memory::kHost;
  // The CUDA stream in which the device's memory was written, or null for the default one: what it
  // was given before the operation begins comes first. After the operation no stream has to wait.
  void* stream = nullptr;
  // These are compared between the ranks and reported in errors.
  std::string name = {};
  std::string form = {};  // type and shape as the caller has them (FormOf); empty: not compared
  uint64_t step = 0;      // of the program, where it counts its steps; see Call
  std::chrono::steady_clock::time_point submitted = {};  // to a queue, which sets it
};

}  // namespace hearth::collective
