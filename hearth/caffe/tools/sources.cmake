# The tools that make and read databases; included by hearth/caffe/CMakeLists.txt.
set(HEARTH_TOOL_SOURCES
  tools/compute_image_mean.cc
  tools/convert_imageset.cc
  tools/extract_features.cc
  tools/progress_log.cc)
set(HEARTH_TOOL_TESTS
  tools/compute_image_mean_test.cc
  tools/convert_imageset_test.cc
  tools/extract_features_test.cc
  tools/progress_log_test.cc)
