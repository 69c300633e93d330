// Python's description of one collective operation, with references to its arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <string>
#include <vector>

#include "hearth/collective/group.h"

namespace hearth::bindings {

using OutputArray = nanobind::ndarray<nanobind::c_contig, nanobind::device::cpu>;
using InputArray = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;

// These functions throw kInvalidArgument for an unsupported value, and list the supported ones.
collective::DataType TypeOf(const nanobind::dlpack::dtype& type);
std::string NameOf(const nanobind::dlpack::dtype& type);  // accepts any type
collective::Op OpOf(const std::string& name);
collective::Wire WireOf(const std::string& name);

// Returns a signature such as "float32[2, 3]". Accepts any type.
template <typename Array>
std::string SignatureOf(const Array& array) {
  std::vector<int64_t> shape;
  for (size_t axis = 0; axis < array.ndim(); ++axis) {
    shape.push_back(static_cast<int64_t>(array.shape(axis)));
  }
  return collective::SignatureOf(NameOf(array.dtype()), shape);
}

// A request on arrays, which it keeps alive. Create, copy and destroy with the GIL.
class ArrayRequest {
 public:
  // Throws kInvalidArgument for an unknown operation, a missing array, or arrays of different
  // types.
  ArrayRequest(const std::string& operation, std::optional<OutputArray> output,
               std::optional<InputArray> input);

  // Returns the request for `group`. Throws kInvalidArgument if the arrays' sizes do not match.
  collective::Request For(const collective::Group& group) const;

  collective::Op op = collective::Op::kSum;
  collective::Wire wire = collective::Wire::kFloat32;
  int peer = 0;
  std::vector<size_t> counts;
  std::string name;
  std::string signature;  // empty: signature of the array with the same size on all ranks
  uint64_t step = 0;

 private:
  size_t WholeCount() const;
  std::string OwnSignature() const;
  void CheckSizes(const collective::Group& group, const collective::Request& request) const;

  collective::Operation operation_;
  std::string operation_name_;
  std::optional<OutputArray> output_;
  std::optional<InputArray> input_;
  collective::DataType type_ = collective::DataType::kFloat32;
};

}  // namespace hearth::bindings
