// The device library for torch: a table of ATen's functions behind the C interface of
// tensor/device_api.h. It contains no code of nets, and is compiled for one version of torch.
#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/version.h>

#include <array>
#include <string>
#include <vector>

#include "hearth/caffe/device/device_call.h"

namespace hearth::device {
namespace {

// The thread's last error, passed to the caller as text. C++ exceptions must not cross this
// interface, because the two libraries may be built with different compilers and versions of torch.
thread_local std::string problem;

int32_t Fail(int32_t code, std::string text) {
  problem = std::move(text);
  return code;
}

int32_t CallOperation(int32_t operation, const HearthDeviceValue* arguments, int32_t count,
                      HearthDeviceValue* results, int32_t* result_count) {
  static const Table& table = TheTable();
  if (operation < 0 || operation >= HEARTH_OP_COUNT || table[operation] == nullptr) {
    return Fail(2, "no such operation");
  }
  try {
    // Layers compute their own gradients, so calls bypass autograd's dispatch.
    const at::AutoDispatchBelowADInplaceOrView guard;
    Call call(arguments, count, results, *result_count);
    // If this throws, the results stored so far are not reported.
    table[operation](call);
    *result_count = call.given();
    return 0;
  } catch (const c10::OutOfMemoryError& error) {
    return Fail(1, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    // The CPU's allocator throws a c10::Error instead of an OutOfMemoryError.
    const std::string text = error.what_without_backtrace();
    return Fail(text.find("can't allocate memory") != text.npos ? 1 : 2, text);
  } catch (const std::exception& error) {
    return Fail(2, error.what());
  }
}

void Release(void* tensor) { delete static_cast<at::Tensor*>(tensor); }

}  // namespace

const Table& TheTable() {
  static const Table table = [] {
    Table made{};
    AddElementwise(made);
    AddValues(made);
    AddLayers(made);
    AddDevices(made);
    return made;
  }();
  return table;
}

}  // namespace hearth::device

extern "C" __attribute__((visibility("default"))) const HearthDeviceApi* hearth_device_api() {
  static const HearthDeviceApi api = {
      kHearthDeviceApiVersion, "torch " TORCH_VERSION, hearth::device::CallOperation,
      [] { return hearth::device::problem.c_str(); }, hearth::device::Release};
  return &api;
}
