// hearth.native._core: the bindings of the core that do not need torch.
#include "module.h"

NB_MODULE(_core, m) {
  // Leak warnings are disabled, because a program may exit while one of its threads still waits for
  // rows.
  nanobind::set_leak_warnings(false);
  m.doc() = "The native core of Hearth: rendezvous, rings and datasets, collective, prototxt.";
  hearth::bindings::RegisterErrors();
  hearth::bindings::RegisterPrototxt(m);
  hearth::bindings::RegisterSchema(m);
  hearth::bindings::RegisterSettings(m);
  hearth::bindings::RegisterRendezvous(m);
  hearth::bindings::RegisterRing(m);
  hearth::bindings::RegisterDataset(m);
  hearth::bindings::RegisterPartitionLedger(m);
  hearth::bindings::RegisterPartitionQueue(m);
  hearth::bindings::RegisterSequenceReader(m);
  hearth::bindings::RegisterPickleRows(m);
  hearth::bindings::RegisterLmdb(m);
  hearth::bindings::RegisterTfRecord(m);
  hearth::bindings::RegisterCollective(m);
  hearth::bindings::RegisterStorage(m);
  hearth::bindings::RegisterBoard(m);
  hearth::bindings::RegisterImage(m);
  hearth::bindings::RegisterBase(m);
}
