// The module hearth.native._caffe: the Caffe engine, which needs torch's libraries.
#include "caffe_module.h"

namespace nb = nanobind;

NB_MODULE(_caffe, m) {
  // Leak warnings are disabled, because a callback or Python layer that references its own net or
  // solver keeps both alive until exit.
  nb::set_leak_warnings(false);
  m.doc() = "The Caffe engine of Hearth: nets, solvers, images.";
  // _core also converts hearth::Error to Python exceptions for this module.
  nb::module_::import_("hearth.native._core");
  hearth::bindings::RegisterBlobs(m);
  hearth::bindings::RegisterPythonLayer(m);
  hearth::bindings::RegisterNet(m);
  hearth::bindings::RegisterNetText(m);
  hearth::bindings::RegisterSolver(m);
  hearth::bindings::RegisterDevice(m);
  hearth::bindings::RegisterImages(m);
  hearth::bindings::RegisterLevelDb(m);
  hearth::bindings::RegisterLog(m);
  hearth::bindings::RegisterProgram(m);
}
