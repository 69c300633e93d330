// The functions of NCCL that the collective uses, loaded at run time like UCX (ucx_api.h);
// PyTorch's CUDA wheel contains the library. The struct layouts are those of NCCL 2.14. They
// contain their size and version, so later versions of NCCL can read them. nccl_api_test.cc
// compares them with the header in the wheel.
#pragma once

#include <cstddef>
#include <string>

#include "hearth/collective/device/cuda_api.h"

namespace hearth::collective::nccl {

struct Communicator;

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kInProgress = 7;

// ncclUniqueId, which NCCL's functions expect by value.
struct UniqueId {
  char bytes[128] = {};
};

// ncclConfig_t of NCCL 2.14.
struct Config {
  static constexpr unsigned kMagic = 0xcafebeef;
  static constexpr unsigned kVersion = 21400;

  size_t size = sizeof(Config);
  unsigned magic = kMagic;
  unsigned version = kVersion;
  int blocking = 0;
};

// Values of ncclDataType_t and ncclRedOp_t.
enum Type {
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9
};
enum Reduction { kSum = 0, kMax = 2, kMin = 3, kMean = 4 };

// NCCL's functions; the names are NCCL's without "nccl". Immutable once loaded.
struct Api {
  Result (*get_version)(int* version);
  Result (*get_unique_id)(UniqueId* id);
  Result (*init_rank)(Communicator** communicator, int world, UniqueId id, int rank,
                      Config* config);
  Result (*async_error)(Communicator* communicator, Result* result);
  Result (*finalize)(Communicator* communicator);
  Result (*destroy)(Communicator* communicator);
  Result (*abort)(Communicator* communicator);
  const char* (*error_string)(Result result);
  const char* (*last_error)(Communicator* communicator);
  Result (*all_reduce)(const void* input, void* output, size_t count, int type, int op,
                       Communicator* communicator, cuda::Stream* stream);
  Result (*reduce)(const void* input, void* output, size_t count, int type, int op, int root,
                   Communicator* communicator, cuda::Stream* stream);
  Result (*reduce_scatter)(const void* input, void* output, size_t part, int type, int op,
                           Communicator* communicator, cuda::Stream* stream);
  Result (*all_gather)(const void* input, void* output, size_t part, int type,
                       Communicator* communicator, cuda::Stream* stream);
  Result (*broadcast)(const void* input, void* output, size_t count, int type, int root,
                      Communicator* communicator, cuda::Stream* stream);
  Result (*send)(const void* input, size_t count, int type, int peer, Communicator* communicator,
                 cuda::Stream* stream);
  Result (*receive)(void* output, size_t count, int type, int peer, Communicator* communicator,
                    cuda::Stream* stream);
  Result (*group_start)();
  Result (*group_end)();
};

// Loads libnccl.so.2 once per process; any thread.
const Loaded<Api>& Library();

// "2.30.7"
std::string Version();

}  // namespace hearth::collective::nccl
