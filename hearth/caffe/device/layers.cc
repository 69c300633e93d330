// Operations of layers and update rules that each call one ATen function.
#include <ATen/ATen.h>

#include "hearth/caffe/device/device_call.h"

namespace hearth::device {
namespace {

// Arguments are described in device_ops.cc: windows are pairs of height and width. As in Caffe,
// padding counts in an average's divisor. A divisor of 1 turns the average into a sum.
void AddPooling(Table& table) {
  table[HEARTH_OP_avg_pool2d] = [](Call& c) {
    const c10::optional<int64_t> divisor = c.flag(6) ? c10::optional<int64_t>(1) : c10::nullopt;
    if (c.has(0)) {
      at::avg_pool2d_out(c.tensor(0), c.tensor(1), c.integers(2), c.integers(3), c.integers(4),
                         c.flag(5), /*count_include_pad=*/true, divisor);
    } else {
      c.Return(at::avg_pool2d(c.tensor(1), c.integers(2), c.integers(3), c.integers(4), c.flag(5),
                              /*count_include_pad=*/true, divisor));
    }
  };
  table[HEARTH_OP_avg_pool2d_backward] = [](Call& c) {
    at::avg_pool2d_backward_out(c.tensor(0), c.tensor(1), c.tensor(2), c.integers(3), c.integers(4),
                                c.integers(5), c.flag(6), /*count_include_pad=*/true, c10::nullopt);
  };
  table[HEARTH_OP_max_pool2d_with_indices] = [](Call& c) {
    // ATen's positions (row * width + column in the plane) are the values of Caffe's mask.
    at::Tensor chosen = at::empty({0}, c.tensor(1).options().dtype(at::kLong));
    at::max_pool2d_with_indices_out(c.tensor(0), chosen, c.tensor(1), c.integers(2), c.integers(3),
                                    c.integers(4), /*dilation=*/1, c.flag(5));
    c.Return(chosen);
  };
  table[HEARTH_OP_max_pool2d_with_indices_backward] = [](Call& c) {
    at::max_pool2d_with_indices_backward_out(c.tensor(0), c.tensor(1), c.tensor(2), c.integers(4),
                                             c.integers(5), c.integers(6), /*dilation=*/1,
                                             c.flag(7), c.tensor(3));
  };
}

// The output padding is zero (`none`), because Caffe has no such parameter.
void AddConvolution(Table& table) {
  table[HEARTH_OP_convolution] = [](Call& c) {
    c10::optional<at::Tensor> bias;
    if (c.has(2)) bias = c.tensor(2);
    const std::vector<int64_t> none(c.integers(3).size(), 0);
    c.Return(at::convolution(c.tensor(0), c.tensor(1), bias, c.integers(3), c.integers(4),
                             c.integers(5), c.flag(6), none, c.integer(7)));
  };
  table[HEARTH_OP_convolution_backward] = [](Call& c) {
    // Gradients of x, weight and bias. ATen leaves those that are not wanted undefined.
    const at::IntArrayRef wanted = c.integers(8);
    const at::Tensor& dy = c.tensor(0);
    const std::vector<int64_t> none(c.integers(3).size(), 0);
    const auto [dx, dw, db] =
        at::convolution_backward(dy, c.tensor(1), c.tensor(2), at::IntArrayRef{dy.size(1)},
                                 c.integers(3), c.integers(4), c.integers(5), c.flag(6), none,
                                 c.integer(7), {wanted[0] != 0, wanted[1] != 0, wanted[2] != 0});
    c.Return(dx);
    c.Return(dw);
    c.Return(db);
  };
}

// Adds the functions that autograd calls for batch normalization. They also return which
// implementation (cuDNN's or ATen's) was used and its reserve buffer, so that the gradient can call
// the same implementation.
void AddNormalization(Table& table) {
  table[HEARTH_OP__batch_norm_impl_index] = [](Call& c) {
    const auto [y, mean, inverse, reserve, implementation] = at::_batch_norm_impl_index(
        c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3), c.tensor(4), /*training=*/true,
        /*momentum=*/1, c.number(5), /*cudnn_enabled=*/true);
    c.Return(y);
    c.Return(mean);
    c.Return(inverse);
    c.Return(reserve);
    c.GiveInteger(implementation);
  };
  table[HEARTH_OP__batch_norm_impl_index_backward] = [](Call& c) {
    // x is already normalized, so both the running and the saved statistics are mean 0 and inverse
    // deviation 1 per channel.
    const at::Tensor &zeros = c.tensor(4), &ones = c.tensor(5);
    const auto [dx, d_weight, d_bias] = at::_batch_norm_impl_index_backward(
        c.integer(0), c.tensor(1), c.tensor(2), c.tensor(3), zeros, ones, zeros, ones,
        /*train=*/true, /*eps=*/0, {true, true, true}, c.has(6) ? c.tensor(6) : at::Tensor());
    c.Return(dx);
    c.Return(d_weight);
    c.Return(d_bias);
  };
  table[HEARTH_OP__softmax] = [](Call& c) {
    at::_softmax_out(c.tensor(0), c.tensor(1), c.integer(2), /*half_to_float=*/false);
  };
  table[HEARTH_OP__softmax_backward_data] = [](Call& c) {
    at::_softmax_backward_data_out(c.tensor(0), c.tensor(1), c.tensor(2), c.integer(3), at::kFloat);
  };
}

// Adds ATen's _foreach functions, which update all parameters of the net by a few kernels instead
// of one kernel per parameter.
void AddUpdates(Table& table) {
  table[HEARTH_OP__foreach_add_] = [](Call& c) {
    at::_foreach_add_(c.tensors(0), c.tensors(1), c.scalar(2));
  };
  table[HEARTH_OP__foreach_mul] = [](Call& c) {
    c.Return(at::_foreach_mul(c.tensors(0), c.scalar(1)));
  };
  table[HEARTH_OP__foreach_mul_] = [](Call& c) { at::_foreach_mul_(c.tensors(0), c.scalar(1)); };
  table[HEARTH_OP__foreach_sign] = [](Call& c) { c.Return(at::_foreach_sign(c.tensors(0))); };
  table[HEARTH_OP__foreach_sub_] = [](Call& c) { at::_foreach_sub_(c.tensors(0), c.tensors(1)); };
  table[HEARTH_OP_linalg_vector_norm] = [](Call& c) {
    // The norm is computed in double precision, because it sums the squares of millions of
    // gradients.
    const at::Tensor norm =
        at::linalg_vector_norm(c.tensor(0), 2, c10::nullopt, false, at::kDouble);
    c.GiveNumber(norm.item<double>());
  };
}

}  // namespace

void AddLayers(Table& table) {
  AddPooling(table);
  AddConvolution(table);
  AddNormalization(table);
  AddUpdates(table);
}

}  // namespace hearth::device
