// Views, new tensors, copies, and indexing.
#include <ATen/ATen.h>

#include "hearth/caffe/device/device_call.h"

namespace hearth::device {
namespace {

at::ScalarType TypeOf(int64_t dtype) {
  switch (dtype) {
    case HEARTH_BFLOAT16:
      return at::kBFloat16;
    case HEARTH_INT:
      return at::kInt;
    case HEARTH_LONG:
      return at::kLong;
    case HEARTH_BOOL:
      return at::kBool;
    default:
      return at::kFloat;
  }
}

at::Device DeviceOf(int64_t kind, int64_t index) {
  if (kind == HEARTH_CUDA) return {at::kCUDA, static_cast<at::DeviceIndex>(index)};
  return kind == HEARTH_META ? at::kMeta : at::kCPU;
}

// Integer arguments are passed as a list: axis first, then positions.
void AddViews(Table& table) {
  table[HEARTH_OP_expand] = [](Call& c) { c.Return(c.tensor(0).expand(c.integers(1))); };
  table[HEARTH_OP_permute] = [](Call& c) { c.Return(c.tensor(0).permute(c.integers(1))); };
  table[HEARTH_OP_reshape] = [](Call& c) { c.Return(c.tensor(0).reshape(c.integers(1))); };
  table[HEARTH_OP_select] = [](Call& c) {
    c.Return(c.tensor(0).select(c.integers(1)[0], c.integers(1)[1]));
  };
  table[HEARTH_OP_slice] = [](Call& c) {
    const at::IntArrayRef n = c.integers(1);
    c.Return(c.tensor(0).slice(n[0], n[1], n[2], n[3]));
  };
  table[HEARTH_OP_squeeze] = [](Call& c) { c.Return(c.tensor(0).squeeze(c.integers(1)[0])); };
  table[HEARTH_OP_transpose] = [](Call& c) {
    c.Return(c.tensor(0).transpose(c.integers(1)[0], c.integers(1)[1]));
  };
  table[HEARTH_OP_unsqueeze] = [](Call& c) { c.Return(c.tensor(0).unsqueeze(c.integers(1)[0])); };
  table[HEARTH_OP_view] = [](Call& c) { c.Return(c.tensor(0).view(c.integers(1))); };
}

void AddNew(Table& table) {
  // arange and full create their tensor on the device of argument 0; full also uses its type.
  table[HEARTH_OP_arange] = [](Call& c) {
    c.Return(at::arange(c.integer(1), c.tensor(0).options().dtype(at::kLong)));
  };
  table[HEARTH_OP_clone] = [](Call& c) { c.Return(c.tensor(0).clone()); };
  table[HEARTH_OP_contiguous] = [](Call& c) { c.Return(c.tensor(0).contiguous()); };
  table[HEARTH_OP_channels_last] = [](Call& c) {
    c.Return(c.tensor(0).contiguous(at::MemoryFormat::ChannelsLast));
  };
  table[HEARTH_OP_full] = [](Call& c) {
    c.Return(at::full(c.integers(1), c.scalar(2), c.tensor(0).options()));
  };
  // `longs` copies the caller's list to a tensor on the CPU, then to the device.
  table[HEARTH_OP_longs] = [](Call& c) {
    c.Return(at::tensor(c.integers(0), at::kLong).to(DeviceOf(c.integer(1), c.integer(2))));
  };
  table[HEARTH_OP_to] = [](Call& c) { c.Return(c.tensor(0).to(TypeOf(c.integer(1)))); };
  table[HEARTH_OP_zeros] = [](Call& c) {
    const at::Device device = DeviceOf(c.integer(1), c.integer(2));
    c.Return(at::zeros(c.integers(0), at::TensorOptions(at::kFloat).device(device)));
  };
}

void AddCopies(Table& table) {
  table[HEARTH_OP_copy_] = [](Call& c) { c.tensor(0).copy_(c.tensor(1)); };
  table[HEARTH_OP_fill_] = [](Call& c) { c.tensor(0).fill_(c.scalar(1)); };
  table[HEARTH_OP_from_host] = [](Call& c) {
    // Wraps the caller's memory in a tensor that does not own it. copy_() waits for the transfer,
    // so the caller may change the memory afterwards.
    c.tensor(0).copy_(at::from_blob(c.pointer(1), c.integers(2), at::kFloat));
  };
  table[HEARTH_OP_to_host] = [](Call& c) {
    at::from_blob(c.pointer(1), c.tensor(0).sizes(), at::kFloat).copy_(c.tensor(0));
  };
}

void AddByIndex(Table& table) {
  table[HEARTH_OP_flip] = [](Call& c) { c.Return(c.tensor(0).flip(c.integer(1))); };
  table[HEARTH_OP_gather] = [](Call& c) {
    c.Return(c.tensor(0).gather(c.integer(1), c.tensor(2)));
  };
  table[HEARTH_OP_index_add_] = [](Call& c) {
    c.tensor(0).index_add_(c.integer(1), c.tensor(2), c.tensor(3));
  };
  table[HEARTH_OP_index_select] = [](Call& c) {
    c.Return(c.tensor(0).index_select(c.integer(1), c.tensor(2)));
  };
  table[HEARTH_OP_masked_fill_] = [](Call& c) {
    c.tensor(0).masked_fill_(c.tensor(1), c.scalar(2));
  };
  table[HEARTH_OP_scatter_] = [](Call& c) {
    c.at(3).type == HearthDeviceValue::kTensor
        ? c.tensor(0).scatter_(c.integer(1), c.tensor(2), c.tensor(3))
        : c.tensor(0).scatter_(c.integer(1), c.tensor(2), c.scalar(3));
  };
  table[HEARTH_OP_scatter_add_] = [](Call& c) {
    c.tensor(0).scatter_add_(c.integer(1), c.tensor(2), c.tensor(3));
  };
  table[HEARTH_OP_sort] = [](Call& c) {
    const auto [values, positions] = c.tensor(0).sort(c.flag(1), c.integer(2), c.flag(3));
    c.Return(values);
    c.Return(positions);
  };
  table[HEARTH_OP_where] = [](Call& c) {
    c.Return(at::where(c.tensor(0), c.operand(1), c.operand(2)));
  };
}

void AddFacts(Table& table) {
  table[HEARTH_OP_data_ptr] = [](Call& c) { c.GivePointer(c.tensor(0).data_ptr()); };
  table[HEARTH_OP_device] = [](Call& c) {
    const at::Device device = c.tensor(0).device();
    const int64_t kind = device.is_cuda()   ? HEARTH_CUDA
                         : device.is_meta() ? HEARTH_META
                                            : HEARTH_CPU;
    // torch's index of the CPU is -1; here it is 0, as in Device.
    const int64_t facts[] = {kind, std::max<int64_t>(0, device.index())};
    c.GiveIntegers(facts);
  };
  table[HEARTH_OP_is_alias_of] = [](Call& c) {
    c.GiveInteger(c.tensor(0).is_alias_of(c.tensor(1)));
  };
  // Waits until the device has computed the value.
  table[HEARTH_OP_item] = [](Call& c) { c.GiveNumber(c.tensor(0).item().toDouble()); };
  table[HEARTH_OP_sizes] = [](Call& c) { c.GiveIntegers(c.tensor(0).sizes()); };
  table[HEARTH_OP_strides] = [](Call& c) { c.GiveIntegers(c.tensor(0).strides()); };
}

}  // namespace

void AddValues(Table& table) {
  AddViews(table);
  AddNew(table);
  AddCopies(table);
  AddByIndex(table);
  AddFacts(table);
}

}  // namespace hearth::device
