// pycaffe's set_mode_cpu, set_mode_gpu and set_device.
#include "caffe_device.h"

#include <nanobind/nanobind.h>

#include "caffe_module.h"
#include "gil.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

// Set per process, as in pycaffe. Guarded by the GIL.
caffe::ComputeDevice mode_device;

}  // namespace

const caffe::ComputeDevice& ModeDevice() { return mode_device; }

void RegisterDevice(nb::module_& m) {
  // The first call takes seconds, because it loads the device library and with it torch's CUDA
  // libraries.
  m.def("count_gpus", caffe::CountCudaDevices, ReleaseGil(),
        "Number of CUDA devices that this process can use.");
  m.def(
      "use_cpu", [] { mode_device = {}; }, "Nets built after this call compute on the CPU.");
  m.def(
      "use_gpu",
      [](size_t device) { mode_device = WithoutGil([&] { return caffe::CudaDevice(device); }); },
      "device"_a,
      "Nets built after this call compute on this CUDA device. Raises ValueError if it does "
      "not exist.");
}

}  // namespace hearth::bindings
