#include "hearth/collective/operation/request.h"

namespace hearth::collective {

Call CallOf(const Request& request) {
  Call call;
  call.operation = request.operation;
  call.bytes = request.count * SizeOf(request.type);
  call.type = request.type;
  // Calls of different ranks are compared as bytes. A field that the operation ignores keeps its
  // default value, because otherwise equal calls would differ.
  if (request.operation != Operation::kBarrier) call.memory = request.memory;
  if (Reduces(request.operation)) {
    call.op = request.op;
    call.wire = request.wire;
  }
  if (IsPair(request.operation) || request.operation == Operation::kBroadcast) {
    call.root = request.peer;
  }
  // The number of parts is variable but the call has a fixed size, so the parts are hashed.
  for (const size_t count : request.counts) call.AddToDigest(count);
  call.SetName(request.name);
  call.SetSignature(request.signature);
  call.step = request.step;
  return call;
}

}  // namespace hearth::collective
