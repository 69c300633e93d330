#include "hearth/collective/c_api.h"

#include <exception>
#include <span>

#include "hearth/base/error.h"
#include "hearth/collective/queue_c_api.h"

namespace hearth::collective {
namespace {

// In the order of the C interface's enums.
constexpr Operation kOperations[] = {Operation::kAllReduce, Operation::kAllGather,
                                     Operation::kBroadcast};
constexpr DataType kTypes[] = {DataType::kFloat32,  DataType::kFloat64, DataType::kFloat16,
                               DataType::kBfloat16, DataType::kInt32,   DataType::kInt64,
                               DataType::kUint8,    DataType::kBool};
constexpr Op kReductions[] = {Op::kSum, Op::kMean, Op::kMin, Op::kMax};
constexpr Wire kWires[] = {Wire::kFloat32, Wire::kFloat16, Wire::kBfloat16};

// `what` names the kind of value in the error, if the C interface does not define the value.
template <typename Entry, size_t kSize>
Entry Translate(const Entry (&table)[kSize], int value, const char* what) {
  Require(value >= 0 && static_cast<size_t>(value) < kSize, ErrorCode::kInvalidArgument,
          "{} is not {} of the C interface", value, what);
  return table[value];
}

Request RequestOf(const hearth_operation& operation, int world) {
  Request request = {.operation = Translate(kOperations, operation.kind, "an operation"),
                     .input = operation.input,
                     .output = operation.output,
                     .count = operation.count,
                     .type = Translate(kTypes, operation.type, "a data type")};
  request.op = Translate(kReductions, operation.reduction, "a reduction");
  request.wire = Translate(kWires, operation.wire, "a wire format");
  request.peer = operation.root;
  // The C interface passes no length because `counts` has one entry per rank.
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

// Converts an error code to a result. Distinguishes only codes to which a caller can react; the
// message contains the details.
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

// No exception may pass through C frames. The text is valid only during the callback.
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
