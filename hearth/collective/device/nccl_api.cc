#include "hearth/collective/device/nccl_api.h"

#include <utility>

#include "hearth/base/error.h"

namespace hearth::collective::nccl {

const Loaded<Api>& Library() {
  static const Loaded<Api> loaded = [] {
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
  }();
  return loaded;
}

std::string Version() {
  int version = 0;
  Library().Get().get_version(&version);
  constexpr int kMajor = 10000, kMinor = 100;
  return fmt::format("{}.{}.{}", version / kMajor, version % kMajor / kMinor, version % kMinor);
}

}  // namespace hearth::collective::nccl
