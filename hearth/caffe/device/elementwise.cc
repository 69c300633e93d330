// Elementwise operations, and sums.
#include <ATen/ATen.h>

#include "hearth/caffe/device/device_call.h"

namespace hearth::device {
namespace {

// Defines an operation on one operand: name_out(out, x), or name(x) without `out`.
#define HEARTH_OF_ONE(name)                                                                      \
  table[HEARTH_OP_##name] = [](Call& c) {                                                        \
    c.has(0) ? void(at::name##_out(c.tensor(0), c.tensor(1))) : c.Return(at::name(c.tensor(1))); \
  }
// Defines an operation on two operands: two tensors, or a tensor and a number.
#define HEARTH_OF_TWO(name)                                                  \
  table[HEARTH_OP_##name] = [](Call& c) {                                    \
    c.has(0) ? void(at::name##_out(c.tensor(0), c.operand(1), c.operand(2))) \
             : c.Return(at::name(c.operand(1), c.operand(2)));               \
  }
// Defines an operation on two operands and a number that multiplies the second operand.
#define HEARTH_OF_TWO_WITH_NUMBER(name)                                                   \
  table[HEARTH_OP_##name] = [](Call& c) {                                                 \
    c.has(0) ? void(at::name##_out(c.tensor(0), c.operand(1), c.operand(2), c.scalar(3))) \
             : c.Return(at::name(c.operand(1), c.operand(2), c.scalar(3)));               \
  }
#define HEARTH_OF_THREE_WITH_NUMBER(name)                                                       \
  table[HEARTH_OP_##name] = [](Call& c) {                                                       \
    c.has(0)                                                                                    \
        ? void(at::name##_out(c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3), c.scalar(4))) \
        : c.Return(at::name(c.tensor(1), c.tensor(2), c.tensor(3), c.scalar(4)));               \
  }
#define HEARTH_WITH_NUMBER(name)                                           \
  table[HEARTH_OP_##name] = [](Call& c) {                                  \
    c.has(0) ? void(at::name##_out(c.tensor(0), c.tensor(1), c.scalar(2))) \
             : c.Return(at::name(c.tensor(1), c.scalar(2)));               \
  }

void AddOfOne(Table& table) {
  HEARTH_OF_ONE(abs);
  HEARTH_OF_ONE(exp);
  HEARTH_OF_ONE(log);
  HEARTH_OF_ONE(log1p);
  HEARTH_OF_ONE(logical_not);
  HEARTH_OF_ONE(neg);
  HEARTH_OF_ONE(reciprocal);
  HEARTH_OF_ONE(rsqrt);
  HEARTH_OF_ONE(sigmoid);
  HEARTH_OF_ONE(sign);
  HEARTH_OF_ONE(sqrt);
  HEARTH_OF_ONE(square);
  HEARTH_OF_ONE(tanh);
  HEARTH_WITH_NUMBER(clamp_min);
  HEARTH_WITH_NUMBER(elu);
  HEARTH_WITH_NUMBER(leaky_relu);
  HEARTH_WITH_NUMBER(pow);
  table[HEARTH_OP_clamp] = [](Call& c) {
    c.has(0) ? void(at::clamp_out(c.tensor(0), c.tensor(1), c.scalar(2), c.scalar(3)))
             : c.Return(at::clamp(c.tensor(1), c.scalar(2), c.scalar(3)));
  };
}

void AddOfSeveral(Table& table) {
  HEARTH_OF_TWO(bitwise_and);
  HEARTH_OF_TWO(bitwise_right_shift);
  HEARTH_OF_TWO(bitwise_xor);
  HEARTH_OF_TWO(div);
  HEARTH_OF_TWO(eq);
  HEARTH_OF_TWO(ge);
  HEARTH_OF_TWO(gt);
  HEARTH_OF_TWO(le);
  HEARTH_OF_TWO(logical_and);
  HEARTH_OF_TWO(lt);
  HEARTH_OF_TWO(maximum);
  HEARTH_OF_TWO(mul);
  HEARTH_OF_TWO(ne);
  HEARTH_OF_TWO(sigmoid_backward);
  HEARTH_OF_TWO(tanh_backward);
  HEARTH_OF_THREE_WITH_NUMBER(addcdiv);
  HEARTH_OF_THREE_WITH_NUMBER(addcmul);
  HEARTH_OF_TWO_WITH_NUMBER(add);
  HEARTH_OF_TWO_WITH_NUMBER(sub);
  // Only the sign of argument 2 matters, so a ReLU may pass its input or its output.
  table[HEARTH_OP_leaky_relu_backward] = [](Call& c) {
    at::leaky_relu_backward_out(c.tensor(0), c.tensor(1), c.tensor(2), c.scalar(3),
                                /*self_is_result=*/false);
  };
}

void AddSums(Table& table) {
  // Callers set beta (argument 4) to 0 if argument 1 is uninitialized; ATen then does not read it.
  table[HEARTH_OP_addmm] = [](Call& c) {
    c.has(0) ? void(at::addmm_out(c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3), c.scalar(4)))
             : c.Return(at::addmm(c.tensor(1), c.tensor(2), c.tensor(3), c.scalar(4)));
  };
  table[HEARTH_OP_mm] = [](Call& c) {
    c.has(0) ? void(at::mm_out(c.tensor(0), c.tensor(1), c.tensor(2)))
             : c.Return(at::mm(c.tensor(1), c.tensor(2)));
  };
  table[HEARTH_OP_mean] = [](Call& c) {
    c.has(0) ? void(at::mean_out(c.tensor(0), c.tensor(1), c.integers(2), c.flag(3)))
             : c.Return(at::mean(c.tensor(1), c.integers(2), c.flag(3)));
  };
  table[HEARTH_OP_sum] = [](Call& c) {
    if (c.has(0)) {
      at::sum_out(c.tensor(0), c.tensor(1), c.integers(2), c.flag(3));
    } else {
      c.Return(c.integers(2).empty() ? at::sum(c.tensor(1))
                                     : at::sum(c.tensor(1), c.integers(2), c.flag(3)));
    }
  };
}

}  // namespace

void AddElementwise(Table& table) {
  AddOfOne(table);
  AddOfSeveral(table);
  AddSums(table);
}

}  // namespace hearth::device
