// One Register function per part of the module _caffe; caffe.cc calls them.
#pragma once

#include <nanobind/nanobind.h>

#include "hearth/caffe/net/net.h"

namespace hearth::bindings {

void RegisterBlobs(nanobind::module_& m);
void RegisterDevice(nanobind::module_& m);
void RegisterImages(nanobind::module_& m);
void RegisterLevelDb(nanobind::module_& m);
void RegisterLog(nanobind::module_& m);
void RegisterNet(nanobind::module_& m);
void RegisterNetText(nanobind::module_& m);
void RegisterProgram(nanobind::module_& m);
void RegisterPythonLayer(nanobind::module_& m);
void RegisterSolver(nanobind::module_& m);

// Adds the read-only properties of a net; RegisterNet calls it.
void BindNetStructure(nanobind::class_<caffe::Net>* net);

}  // namespace hearth::bindings
