# Decoding and resizing of pictures; included by hearth/caffe/CMakeLists.txt.
set(HEARTH_IMAGE_SOURCES
  image/decode.cc
  image/encode.cc
  image/jpeg.cc
  image/png.cc
  image/resize.cc)
set(HEARTH_IMAGE_TESTS
  image/decode_test.cc
  image/encode_test.cc
  image/jpeg_test.cc
  image/png_test.cc
  image/resize_test.cc)
set(HEARTH_IMAGE_DEPS JPEG::JPEG PNG::PNG)
