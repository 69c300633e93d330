#include "hearth/collective/c_api.h"

#include <exception>
#include <span>

#include "hearth/base/error.h"
#include "hearth/collective/queue_c_api.h"

namespace hearth::collective {
namespace {

constexpr auto kInvalid = ErrorCode::kInvalidArgument;

Operation KindOf(hearth_operation_kind kind) {
  switch (kind) {
    case HEARTH_ALL_REDUCE:
      return Operation::kAllReduce;
    case HEARTH_ALL_GATHER:
      return Operation::kAllGather;
    case HEARTH_BROADCAST:
      return Operation::kBroadcast;
  }
  Throw(kInvalid, "{} is not an operation of the C interface", static_cast<int>(kind));
}

DataType TypeOf(hearth_data_type type) {
  switch (type) {
    case HEARTH_FLOAT32:
      return DataType::kFloat32;
    case HEARTH_FLOAT64:
      return DataType::kFloat64;
    case HEARTH_FLOAT16:
      return DataType::kFloat16;
    case HEARTH_BFLOAT16:
      return DataType::kBfloat16;
    case HEARTH_INT32:
      return DataType::kInt32;
    case HEARTH_INT64:
      return DataType::kInt64;
    case HEARTH_UINT8:
      return DataType::kUint8;
    case HEARTH_BOOL:
      return DataType::kBool;
  }
  Throw(kInvalid, "{} is not a data type of the C interface", static_cast<int>(type));
}

Op OpOf(hearth_reduction reduction) {
  switch (reduction) {
    case HEARTH_SUM:
      return Op::kSum;
    case HEARTH_MEAN:
      return Op::kMean;
    case HEARTH_MIN:
      return Op::kMin;
    case HEARTH_MAX:
      return Op::kMax;
  }
  Throw(kInvalid, "{} is not a reduction of the C interface", static_cast<int>(reduction));
}

Wire WireOf(hearth_wire wire) {
  switch (wire) {
    case HEARTH_WIRE_AS_IS:
      return Wire::kFloat32;
    case HEARTH_WIRE_FLOAT16:
      return Wire::kFloat16;
    case HEARTH_WIRE_BFLOAT16:
      return Wire::kBfloat16;
  }
  Throw(kInvalid, "{} is not a wire format of the C interface", static_cast<int>(wire));
}

Request RequestOf(const hearth_operation& operation, int world) {
  Request request = {.operation = KindOf(operation.kind),
                     .input = operation.input,
                     .output = operation.output,
                     .count = operation.count,
                     .type = TypeOf(operation.type)};
  request.op = OpOf(operation.reduction);
  request.wire = WireOf(operation.wire);
  request.peer = operation.root;
  if (operation.counts != nullptr) {
    const std::span<const size_t> counts(operation.counts, static_cast<size_t>(world));
    request.counts.assign(counts.begin(), counts.end());
  }
  if (operation.name != nullptr) request.name = operation.name;
  if (operation.shape != nullptr) {
    const char* type = operation.type_name != nullptr ? operation.type_name : NameOf(request.type);
    request.signature = SignatureOf(type, {operation.shape, static_cast<size_t>(operation.dims)});
  }
  request.step = operation.step;
  return request;
}

hearth_result ResultOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return HEARTH_INVALID;
    case ErrorCode::kUnavailable:
      return HEARTH_UNAVAILABLE;
    case ErrorCode::kDeadlineExceeded:
      return HEARTH_TIMEOUT;
    default:
      return HEARTH_FAILED;
  }
}

void Complete(const std::exception_ptr& failure, hearth_done done, void* context) {
  if (failure == nullptr) return done(context, HEARTH_DONE, "");
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    done(context, ResultOf(error.code()), error.message().c_str());
  } catch (const std::exception& error) {
    done(context, HEARTH_FAILED, error.what());
  }
}

}  // namespace

QueueCApi::QueueCApi(Queue& queue, int rank, int world)
    : queue_(queue), api_{.self = this, .rank = rank, .world = world, .submit = &Submit} {}

void QueueCApi::Submit(void* self, const hearth_operation* operation, hearth_done done,
                       void* context) {
  const auto& own = *static_cast<QueueCApi*>(self);
  try {
    own.queue_.Submit(
        RequestOf(*operation, own.api_.world),
        [=](const std::exception_ptr& failure) noexcept { Complete(failure, done, context); });
  } catch (...) {
    Complete(std::current_exception(), done, context);
  }
}

}  // namespace hearth::collective
