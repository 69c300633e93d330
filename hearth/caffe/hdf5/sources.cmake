# HDF5 files; included by hearth/caffe/CMakeLists.txt.
set(HEARTH_HDF5_SOURCES
  hdf5/hdf5_file.cc
  hdf5/snapshot_hdf5.cc)
set(HEARTH_HDF5_TESTS
  hdf5/hdf5_file_test.cc
  hdf5/snapshot_hdf5_test.cc)
set(HEARTH_HDF5_DEPS Hearth::hdf5)
