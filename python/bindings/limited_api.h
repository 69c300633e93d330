// Replaces CPython macros that the limited API lacks by equivalent functions. Modules that use the
// limited API work with all later versions of Python.
#pragma once

#include <Python.h>

#ifdef Py_LIMITED_API
#define PyBytes_AS_STRING PyBytes_AsString
#define PyBytes_GET_SIZE PyBytes_Size
#define PyFloat_AS_DOUBLE PyFloat_AsDouble
#define PyList_SET_ITEM PyList_SetItem
#define PyTuple_GET_ITEM PyTuple_GetItem
#define PyTuple_GET_SIZE PyTuple_Size
#define PyTuple_SET_ITEM PyTuple_SetItem
#endif
