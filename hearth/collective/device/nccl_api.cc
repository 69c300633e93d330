#include "hearth/collective/device/nccl_api.h"

#include <utility>

#include "hearth/base/error.h"
#include "hearth/collective/operation/loaded_library.h"

namespace hearth::collective::nccl {
namespace {

Loaded<Api> Load() {
  LibraryLoader<Api> load("libnccl.so.2", "NCCL",
                          "install 2.14 or newer, as in PyTorch's CUDA wheel");
  load("ncclGetVersion", &Api::get_version);
  load("ncclGetUniqueId", &Api::get_unique_id);
  load("ncclCommInitRankConfig", &Api::init_rank);
  load("ncclCommGetAsyncError", &Api::async_error);
  load("ncclCommFinalize", &Api::finalize);
  load("ncclCommDestroy", &Api::destroy);
  load("ncclCommAbort", &Api::abort);
  load("ncclGetErrorString", &Api::error_string);
  load("ncclGetLastError", &Api::last_error);
  load("ncclAllReduce", &Api::all_reduce);
  load("ncclReduce", &Api::reduce);
  load("ncclReduceScatter", &Api::reduce_scatter);
  load("ncclAllGather", &Api::all_gather);
  load("ncclBroadcast", &Api::broadcast);
  load("ncclSend", &Api::send);
  load("ncclRecv", &Api::receive);
  load("ncclGroupStart", &Api::group_start);
  load("ncclGroupEnd", &Api::group_end);
  return std::move(load).Take();
}

const Loaded<Api>& Once() {
  static const Loaded<Api> loaded = Load();
  return loaded;
}

}  // namespace

const Api& Library() { return Once().Get(); }
std::string LibraryProblem() { return Once().problem; }

std::string Version() {
  int version = 0;
  Library().get_version(&version);
  constexpr int kMajor = 10000, kMinor = 100;
  return fmt::format("{}.{}.{}", version / kMajor, version % kMajor / kMinor, version % kMinor);
}

}  // namespace hearth::collective::nccl
