// One Register function per module of the core, called by module.cc. A new binding adds its
// declaration here, its call in module.cc and its source in CMakeLists.txt. Waiting calls release
// the GIL (gil.h).
#pragma once

#include <nanobind/nanobind.h>

namespace hearth::bindings {

// Converts hearth::Error to the classes of hearth.errors, for every module that imports _core.
void RegisterErrors();
void RegisterDataset(nanobind::module_& m);
void RegisterRing(nanobind::module_& m);
void RegisterPartitionLedger(nanobind::module_& m);
void RegisterPartitionQueue(nanobind::module_& m);
void RegisterSequenceReader(nanobind::module_& m);
void RegisterImage(nanobind::module_& m);
void RegisterLmdb(nanobind::module_& m);
void RegisterBase(nanobind::module_& m);
void RegisterBoard(nanobind::module_& m);
void RegisterCollective(nanobind::module_& m);  // also calls the next two
void RegisterCollectiveQueue(nanobind::module_& m);
void RegisterCollectiveRequest(nanobind::module_& m);
void RegisterPickleRows(nanobind::module_& m);
void RegisterPrototxt(nanobind::module_& m);
void RegisterRendezvous(nanobind::module_& m);
void RegisterTfRecord(nanobind::module_& m);  // also calls the next
void RegisterTfRecordWriter(nanobind::module_& m);
void RegisterSchema(nanobind::module_& m);
void RegisterSettings(nanobind::module_& m);
void RegisterStorage(nanobind::module_& m);

}  // namespace hearth::bindings
