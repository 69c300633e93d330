// The module hearth.native._caffe: the Caffe engine, which needs torch's libraries.
#include "caffe_module.h"

namespace nb = nanobind;

NB_MODULE(_caffe, m) {
  m.doc() = "The Caffe engine of Hearth: nets, solvers, pictures.";
  // _core maps hearth::Error to Python exceptions, for this module too.
  nb::module_::import_("hearth.native._core");
  hearth::bindings::RegisterNet(m);
  hearth::bindings::RegisterSolver(m);
  hearth::bindings::RegisterImages(m);
}
