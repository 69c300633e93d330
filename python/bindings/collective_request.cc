#include "collective_request.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <utility>

#include "hearth/base/error.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using collective::DataType;
using collective::Group;
using collective::Op;
using collective::Operation;
using collective::Request;
using collective::Wire;

constexpr auto kInvalid = ErrorCode::kInvalidArgument;

Operation OperationOf(const std::string& name) {
  constexpr std::array<std::pair<const char*, Operation>, 8> kOperations = {{
      {"all_reduce", Operation::kAllReduce},
      {"reduce_scatter", Operation::kReduceScatter},
      {"all_gather", Operation::kAllGather},
      {"all_to_all", Operation::kAllToAll},
      {"broadcast", Operation::kBroadcast},
      {"send", Operation::kSend},
      {"receive", Operation::kReceive},
      {"barrier", Operation::kBarrier},
  }};
  for (const auto& [known, operation] : kOperations) {
    if (name == known) return operation;
  }
  Throw(kInvalid,
        "unknown operation '{}': use all_reduce, reduce_scatter, all_gather, all_to_all, "
        "broadcast, send, receive or barrier",
        name);
}

}  // namespace

DataType TypeOf(const nb::dlpack::dtype& type) {
  if (type == nb::dtype<float>()) return DataType::kFloat32;
  if (type == nb::dtype<double>()) return DataType::kFloat64;
  if (type == nb::dtype<int32_t>()) return DataType::kInt32;
  if (type == nb::dtype<int64_t>()) return DataType::kInt64;
  if (type == nb::dtype<uint8_t>()) return DataType::kUint8;
  if (type == nb::dtype<bool>()) return DataType::kBool;
  // nb::dtype<>() does not know these types, because C++ does not have them.
  const auto of_16_bits = [&](nb::dlpack::dtype_code code) {
    return type == nb::dlpack::dtype{static_cast<uint8_t>(code), 16, 1};
  };
  if (of_16_bits(nb::dlpack::dtype_code::Float)) return DataType::kFloat16;
  if (of_16_bits(nb::dlpack::dtype_code::Bfloat)) return DataType::kBfloat16;
  Throw(kInvalid,
        "arrays of {} cannot be exchanged: use float16, bfloat16, float32, float64, int32, int64, "
        "uint8 or bool",
        NameOf(type));
}

std::string NameOf(const nb::dlpack::dtype& type) {
  const auto of = [&](const char* kind) { return kind + std::to_string(type.bits); };
  switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
    case nb::dlpack::dtype_code::Int:
      return of("int");
    case nb::dlpack::dtype_code::UInt:
      return of("uint");
    case nb::dlpack::dtype_code::Float:
      return of("float");
    case nb::dlpack::dtype_code::Bfloat:
      return of("bfloat");
    case nb::dlpack::dtype_code::Complex:
      return of("complex");
    case nb::dlpack::dtype_code::Bool:
      return "bool";
    default:
      return of("type");
  }
}

Op OpOf(const std::string& name) {
  for (const Op op : {Op::kSum, Op::kMin, Op::kMax, Op::kMean}) {
    if (name == NameOf(op)) return op;
  }
  Throw(kInvalid, "unknown reduction '{}': use sum, mean, min or max", name);
}

Wire WireOf(const std::string& name) {
  for (const Wire wire : {Wire::kFloat32, Wire::kFloat16, Wire::kBfloat16}) {
    if (name == NameOf(wire)) return wire;
  }
  Throw(kInvalid, "wire is '{}': it must be float32, float16 or bfloat16", name);
}

ArrayRequest::ArrayRequest(const std::string& operation, std::optional<OutputArray> output,
                           std::optional<InputArray> input)
    : operation_(OperationOf(operation)),
      operation_name_(operation),
      output_(std::move(output)),
      input_(std::move(input)) {
  if (operation_ == Operation::kBarrier) return;
  const bool sends = operation_ == Operation::kSend;
  Require(sends ? input_.has_value() : output_.has_value(), kInvalid, "{} needs an array as `{}`",
          operation, sends ? "input" : "output");
  type_ = TypeOf(sends ? input_->dtype() : output_->dtype());
  Require(!input_ || TypeOf(input_->dtype()) == type_, kInvalid,
          "{} from an array of {} to one of {}: both must have the same type", operation,
          input_ ? NameOf(TypeOf(input_->dtype())) : "", NameOf(type_));
}

// Number of elements of the whole operation, which is the size of the array that is not divided
// among the ranks.
size_t ArrayRequest::WholeCount() const {
  if (operation_ == Operation::kBarrier) return 0;
  const bool of_input = operation_ == Operation::kSend ||
                        (operation_ == Operation::kReduceScatter && input_.has_value());
  return of_input ? input_->size() : output_->size();
}

Request ArrayRequest::For(const Group& group) const {
  Request request = {.operation = operation_, .count = WholeCount(), .type = type_};
  if (input_) request.input = input_->data();
  if (output_) request.output = output_->data();
  request.op = op;
  request.wire = wire;
  request.peer = peer;
  request.counts = counts;
  request.name = name;
  request.signature = signature.empty() ? OwnSignature() : signature;
  request.step = step;
  CheckSizes(group, request);
  return request;
}

// In an all-gather with equal parts, ranks compare their inputs, because the outputs may differ in
// shape.
std::string ArrayRequest::OwnSignature() const {
  const bool of_input = operation_ == Operation::kSend || operation_ == Operation::kReduceScatter ||
                        (operation_ == Operation::kAllGather && counts.empty());
  if (of_input && input_) return SignatureOf(*input_);
  return output_ ? SignatureOf(*output_) : "";
}

void ArrayRequest::CheckSizes(const Group& group, const Request& request) const {
  if (!input_ || !output_) return;
  const auto rank = static_cast<size_t>(group.rank());
  size_t input = request.count;
  size_t output = request.count;
  const size_t part = collective::Part(request.count, group.world(), group.rank()).size();
  if (operation_ == Operation::kReduceScatter) output = part;
  if (operation_ == Operation::kAllGather) input = rank < counts.size() ? counts[rank] : part;
  if (operation_ == Operation::kBroadcast && group.rank() != peer) input = input_->size();
  Require(input_->size() == input && output_->size() == output, kInvalid,
          "{} of {} elements on rank {} of {} takes an input of {} and an output of {} elements, "
          "not {} and {}",
          operation_name_, request.count, rank, group.world(), input, output, input_->size(),
          output_->size());
}

void RegisterCollectiveRequest(nb::module_& m) {
  nb::class_<ArrayRequest>(
      m, "Request",
      "One operation that all ranks of a group do together: 'all_reduce', 'reduce_scatter', "
      "'all_gather', 'all_to_all', 'broadcast', 'barrier', or between two ranks 'send' and "
      "'receive'. Without an input it works in place on the output. Arrays are contiguous, on the "
      "CPU, of float16, bfloat16, float32, float64, int32, int64, uint8 or bool. Raises ValueError "
      "for an unknown operation, a missing array and arrays of two types.")
      .def(nb::init<const std::string&, std::optional<OutputArray>, std::optional<InputArray>>(),
           "operation"_a, "output"_a.noconvert() = nb::none(), "input"_a.noconvert() = nb::none())
      .def_prop_rw(
          "op", [](const ArrayRequest& request) { return NameOf(request.op); },
          [](ArrayRequest& request, const std::string& op) { request.op = OpOf(op); },
          "Reduction operator: 'sum', 'mean', 'min' or 'max'.")
      .def_prop_rw(
          "wire", [](const ArrayRequest& request) { return NameOf(request.wire); },
          [](ArrayRequest& request, const std::string& wire) { request.wire = WireOf(wire); },
          "Wire type of float32 sums and means of all_reduce between hosts: 'float32', "
          "'float16' or 'bfloat16'.")
      .def_rw("peer", &ArrayRequest::peer,
              "The root of a broadcast, the peer of a send or receive.")
      .def_rw("counts", &ArrayRequest::counts,
              "The elements of each rank's part in an all_gather, the same list on all ranks; "
              "empty: equal parts.")
      .def_rw("name", &ArrayRequest::name, "Compared between the ranks and reported in errors.")
      .def_rw("signature", &ArrayRequest::signature,
              "Type and shape, compared between the ranks and reported in errors; empty: those of "
              "the array. For a caller whose tensor differs from it: 'int16[2, 3]'.")
      .def_rw("step", &ArrayRequest::step,
              "The program's step counter, compared between the ranks; 0: none.");
}

}  // namespace hearth::bindings
