// Stands in for NCCL in tests: ranks are threads of one process, whose kernels exchange data in its
// memory. Like NCCL, kernels wait for their peers, can be aborted, and do not compare the ranks'
// calls.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "hearth/collective/device/nccl_api.h"
#include "hearth/collective/operation/combine.h"
#include "hearth/collective/testing/stand_in/stand_in.h"

namespace {

namespace hc = hearth::collective;
namespace nccl = hearth::collective::nccl;

constexpr int kVersion = 22900;
constexpr int kInternalError = 3;
constexpr int kInvalidUsage = 5;

// One rank's part of an operation.
struct Part {
  const void* input = nullptr;
  void* output = nullptr;
};

// The kernels of one operation; the last kernel to arrive does the work of all.
struct Exchange {
  std::map<int, Part> parts;
  bool done = false;
};

using Work = std::function<void(std::map<int, Part>&)>;

struct Clique {
  std::mutex mutex;
  std::condition_variable changed;
  int world = 0;
  int joined = 0;
  std::map<std::string, std::shared_ptr<Exchange>> exchanges;
};

struct Trouble {
  int refusal = nccl::kSuccess;
  int broken = nccl::kSuccess;
  bool hangs = false;
};

std::mutex mutex;  // guards the variables below
std::map<std::string, std::weak_ptr<Clique>> cliques;
std::map<int, Trouble> troubles;
std::atomic<int> communicators{0};
int ids = 0;

Trouble TroubleOf(int rank) {
  const std::lock_guard lock(mutex);
  const auto found = troubles.find(rank);
  return found == troubles.end() ? Trouble() : found->second;
}

struct Communicator {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  std::shared_ptr<std::atomic<bool>> aborted = std::make_shared<std::atomic<bool>>(false);
  std::map<std::string, int> numbers;  // per set of participants: number of operations so far
};

// A call whose kernel has not been launched yet.
struct Call {
  Communicator* communicator;
  void* stream;
  std::string among;
  size_t expected;
  Part part;
  Work work;
};

thread_local int depth = 0;
thread_local std::vector<Call> calls;

struct Kernel {
  std::shared_ptr<Clique> clique;
  std::shared_ptr<std::atomic<bool>> aborted;
  int rank;
  std::vector<Call> calls;
  std::vector<std::string> keys;

  // Arrives at all exchanges before it waits for any, so that groups of sends and receives do not
  // wait in a cycle.
  void Run() {
    // Locks `mutex`, so it is called before the lock of the clique is acquired.
    const bool hangs = TroubleOf(rank).hangs;
    std::unique_lock lock(clique->mutex);
    if (hangs) {
      clique->changed.wait(lock, [&] { return aborted->load(); });
      return;
    }
    std::vector<std::shared_ptr<Exchange>> mine;
    for (size_t i = 0; i < calls.size(); ++i) {
      std::shared_ptr<Exchange>& exchange = clique->exchanges[keys[i]];
      if (exchange == nullptr) exchange = std::make_shared<Exchange>();
      mine.push_back(exchange);
      Part& part = exchange->parts[rank];
      if (calls[i].part.input != nullptr) part.input = calls[i].part.input;
      if (calls[i].part.output != nullptr) part.output = calls[i].part.output;
      if (exchange->parts.size() < calls[i].expected) continue;
      if (calls[i].expected == 1 && (part.input == nullptr || part.output == nullptr)) continue;
      calls[i].work(exchange->parts);
      exchange->done = true;
      clique->exchanges.erase(keys[i]);
      clique->changed.notify_all();
    }
    for (const auto& exchange : mine) {
      clique->changed.wait(lock, [&] { return exchange->done || aborted->load(); });
    }
  }
};

void Launch(std::vector<Call> launched) {
  auto* kernel = new Kernel{launched[0].communicator->clique,
                            launched[0].communicator->aborted,
                            launched[0].communicator->rank,
                            launched,
                            {}};
  for (const Call& call : launched) {
    // The send and the receive of a message to the same rank share one exchange.
    const int number = call.communicator->numbers[call.among]++;
    const bool itself = call.expected == 1;
    kernel->keys.push_back(call.among + " " + std::to_string(itself ? number / 2 : number));
  }
  hearth_stand_in_launch(
      launched[0].stream,
      [](void* data) {
        const std::unique_ptr<Kernel> own(static_cast<Kernel*>(data));
        own->Run();
      },
      kernel);
}

int Give(Call call) {
  const int refusal = TroubleOf(call.communicator->rank).refusal;
  if (refusal != nccl::kSuccess) {
    calls.clear();  // drops the whole group without launching any of it
    return refusal;
  }
  if (call.communicator->aborted->load()) return kInvalidUsage;
  calls.push_back(std::move(call));
  if (depth == 0) Launch(std::exchange(calls, {}));
  return nccl::kInProgress;
}

int GiveToAll(void* communicator, void* stream, Part part, Work work) {
  auto* own = static_cast<Communicator*>(communicator);
  return Give({own, stream, "all", static_cast<size_t>(own->clique->world), part, std::move(work)});
}

hc::DataType TypeOf(int type) {
  switch (type) {
    case nccl::kInt32:
      return hc::DataType::kInt32;
    case nccl::kInt64:
      return hc::DataType::kInt64;
    case nccl::kFloat16:
      return hc::DataType::kFloat16;
    case nccl::kFloat32:
      return hc::DataType::kFloat32;
    case nccl::kFloat64:
      return hc::DataType::kFloat64;
    case nccl::kBfloat16:
      return hc::DataType::kBfloat16;
    default:
      return hc::DataType::kUint8;
  }
}

hc::Op OpOf(int op) {
  if (op == nccl::kMin) return hc::Op::kMin;
  if (op == nccl::kMax) return hc::Op::kMax;
  return op == nccl::kMean ? hc::Op::kMean : hc::Op::kSum;
}

char* Host(const void* memory) { return static_cast<char*>(hearth_stand_in_host(memory)); }

// Reduces the inputs of all ranks.
std::vector<char> Reduced(const std::map<int, Part>& parts, size_t count, int type, int op) {
  const size_t bytes = count * SizeOf(TypeOf(type));
  std::vector<char> sum(bytes);
  bool first = true;
  for (const auto& [rank, part] : parts) {
    if (first) {
      std::memcpy(sum.data(), Host(part.input), bytes);
    } else {
      hc::Combine({TypeOf(type), OpOf(op)}, sum.data(), Host(part.input), count);
    }
    first = false;
  }
  if (op == nccl::kMean) Divide(TypeOf(type), sum.data(), count, static_cast<int>(parts.size()));
  return sum;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = kVersion;
  return nccl::kSuccess;
}

int ncclGetUniqueId(nccl::UniqueId* id) {
  const std::lock_guard lock(mutex);
  std::snprintf(id->bytes, sizeof id->bytes, "stand-in %d", ++ids);
  return nccl::kSuccess;
}

int ncclCommInitRankConfig(void** communicator, int world, nccl::UniqueId id, int rank,
                           nccl::Config* config) {
  if (config->magic != nccl::Config::kMagic || config->blocking != 0) return kInvalidUsage;
  if (const int refusal = TroubleOf(rank).refusal) return refusal;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Clique> clique = cliques[id.bytes].lock();
  if (clique == nullptr) cliques[id.bytes] = clique = std::make_shared<Clique>();
  auto* own = new Communicator;
  own->clique = clique;
  own->rank = rank;
  ++communicators;
  *communicator = own;
  const std::lock_guard inner(clique->mutex);
  clique->world = world;
  ++clique->joined;
  return nccl::kInProgress;
}

int ncclCommGetAsyncError(void* communicator, int* result) {
  auto* own = static_cast<Communicator*>(communicator);
  *result = TroubleOf(own->rank).broken;
  const std::lock_guard lock(own->clique->mutex);
  if (own->clique->joined < own->clique->world) *result = nccl::kInProgress;
  return nccl::kSuccess;
}

int ncclCommFinalize(void*) { return nccl::kSuccess; }

int ncclCommDestroy(void* communicator) {
  delete static_cast<Communicator*>(communicator);
  --communicators;
  return nccl::kSuccess;
}

int ncclCommAbort(void* communicator) {
  auto* own = static_cast<Communicator*>(communicator);
  {
    const std::lock_guard lock(own->clique->mutex);
    own->aborted->store(true);
    own->clique->changed.notify_all();
  }
  return ncclCommDestroy(communicator);
}

const char* ncclGetErrorString(int result) {
  return result == kInternalError ? "internal error" : "unhandled error";
}
const char* ncclGetLastError(void*) { return "injected by the test"; }

int ncclAllReduce(const void* input, void* output, size_t count, int type, int op,
                  void* communicator, void* stream) {
  return GiveToAll(communicator, stream, {input, output}, [=](std::map<int, Part>& parts) {
    const std::vector<char> sum = Reduced(parts, count, type, op);
    for (auto& [rank, part] : parts) std::memcpy(Host(part.output), sum.data(), sum.size());
  });
}

int ncclReduce(const void* input, void* output, size_t count, int type, int op, int root,
               void* communicator, void* stream) {
  return GiveToAll(communicator, stream, {input, output}, [=](std::map<int, Part>& parts) {
    const std::vector<char> sum = Reduced(parts, count, type, op);
    std::memcpy(Host(parts.at(root).output), sum.data(), sum.size());
  });
}

int ncclReduceScatter(const void* input, void* output, size_t part_count, int type, int op,
                      void* communicator, void* stream) {
  return GiveToAll(communicator, stream, {input, output}, [=](std::map<int, Part>& parts) {
    const std::vector<char> sum = Reduced(parts, part_count * parts.size(), type, op);
    const size_t bytes = sum.size() / parts.size();
    for (auto& [rank, part] : parts) {
      std::memcpy(Host(part.output), sum.data() + bytes * static_cast<size_t>(rank), bytes);
    }
  });
}

int ncclAllGather(const void* input, void* output, size_t part_count, int type, void* communicator,
                  void* stream) {
  const size_t bytes = part_count * SizeOf(TypeOf(type));
  return GiveToAll(communicator, stream, {input, output}, [=](std::map<int, Part>& parts) {
    for (auto& [from, part] : parts) {
      for (auto& [to, other] : parts) {
        std::memmove(Host(other.output) + bytes * static_cast<size_t>(from), Host(part.input),
                     bytes);
      }
    }
  });
}

int ncclBroadcast(const void* input, void* output, size_t count, int type, int root,
                  void* communicator, void* stream) {
  const size_t bytes = count * SizeOf(TypeOf(type));
  return GiveToAll(communicator, stream, {input, output}, [=](std::map<int, Part>& parts) {
    for (auto& [rank, part] : parts) {
      std::memmove(Host(part.output), Host(parts.at(root).input), bytes);
    }
  });
}

// A message is an exchange between two ranks: one provides the input, the other the output.
static int Message(void* communicator, void* stream, int from, int to, Part part, size_t bytes) {
  auto* own = static_cast<Communicator*>(communicator);
  const std::string among = std::to_string(from) + " to " + std::to_string(to);
  return Give({own, stream, among, from == to ? 1U : 2U, part, [=](std::map<int, Part>& parts) {
                 std::memmove(Host(parts.at(to).output), Host(parts.at(from).input), bytes);
               }});
}

int ncclSend(const void* input, size_t count, int type, int peer, void* communicator,
             void* stream) {
  const int self = static_cast<Communicator*>(communicator)->rank;
  return Message(communicator, stream, self, peer, {input, nullptr}, count * SizeOf(TypeOf(type)));
}

int ncclRecv(void* output, size_t count, int type, int peer, void* communicator, void* stream) {
  const int self = static_cast<Communicator*>(communicator)->rank;
  return Message(communicator, stream, peer, self, {nullptr, output}, count * SizeOf(TypeOf(type)));
}

int ncclGroupStart() {
  ++depth;
  return nccl::kSuccess;
}

int ncclGroupEnd() {
  if (--depth > 0 || calls.empty()) return nccl::kSuccess;
  Launch(std::exchange(calls, {}));
  return nccl::kInProgress;
}

void hearth_stand_in_refuse(int rank, int result) {
  const std::lock_guard lock(mutex);
  troubles[rank].refusal = result;
}
void hearth_stand_in_hang(int rank) {
  const std::lock_guard lock(mutex);
  troubles[rank].hangs = true;
}
void hearth_stand_in_break(int rank, int result) {
  const std::lock_guard lock(mutex);
  troubles[rank].broken = result;
}
void hearth_stand_in_heal() {
  const std::lock_guard lock(mutex);
  troubles.clear();
}
int hearth_stand_in_communicators() { return communicators.load(); }

}  // extern "C"
