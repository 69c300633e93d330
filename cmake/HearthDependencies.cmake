# All external dependencies. System packages come from apt (tools/setup.sh lists them),
# torch and nanobind from the Python environment that runs the build.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
# nanobind looks for `Python`, not `Python3`. `make wheel` passes a Python of 3.12 or newer to
# compile modules for the limited API; only its headers are used.
option(HEARTH_STABLE_ABI "Compile the modules in CPython's limited API of 3.12" OFF)
if(NOT HEARTH_STABLE_ABI)
  set(Python_EXECUTABLE ${Python3_EXECUTABLE})
endif()
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module
             OPTIONAL_COMPONENTS Development.SABIModule)
find_package(Threads REQUIRED)
include(HearthPortable)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(fmt REQUIRED)
add_library(Hearth::fmt INTERFACE IMPORTED)
if(HEARTH_PORTABLE)
  target_compile_definitions(Hearth::fmt INTERFACE FMT_SHARED)
  target_link_libraries(Hearth::fmt INTERFACE hearth_fmt)
else()
  target_link_libraries(Hearth::fmt INTERFACE fmt::fmt)
endif()
find_package(spdlog REQUIRED)
set_target_properties(spdlog::spdlog_header_only PROPERTIES
                      INTERFACE_LINK_LIBRARIES "Threads::Threads;Hearth::fmt")
find_package(CLI11 REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
# Linked statically if possible, because Debian's shared library depends on thirty others (curl,
# Kerberos, LDAP), which are not needed for local files.
find_library(HEARTH_STATIC_HDF5 libhdf5_serial.a)
if(HEARTH_STATIC_HDF5)
  foreach(library hdf5_serial sz aec)
    hearth_static_library(HEARTH_${library}_LIBRARY lib${library}.a)
  endforeach()
  set(HDF5_C_LIBRARIES ${HEARTH_hdf5_serial_LIBRARY} ${HEARTH_sz_LIBRARY} ${HEARTH_aec_LIBRARY}
                       hearth_standard_streams ${ZLIB_LIBRARIES} ${CMAKE_DL_LIBS} m)
endif()
# Some systems have no CMake config for these two.
foreach(database lmdb leveldb)
  find_library(HEARTH_${database}_LIBRARY ${database} REQUIRED)
  add_library(Hearth::${database} INTERFACE IMPORTED)
  target_link_libraries(Hearth::${database} INTERFACE ${HEARTH_${database}_LIBRARY})
endforeach()
add_library(Hearth::hdf5 INTERFACE IMPORTED)
target_include_directories(Hearth::hdf5 INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(Hearth::hdf5 INTERFACE ${HDF5_C_LIBRARIES})
# Header-only.
find_path(HEARTH_XXHASH_INCLUDE xxhash.h REQUIRED)
add_library(Hearth::xxhash INTERFACE IMPORTED)
target_include_directories(Hearth::xxhash SYSTEM INTERFACE ${HEARTH_XXHASH_INCLUDE})
# Only the headers are needed, because the library is loaded at run time, for files over HTTP.
find_path(HEARTH_CURL_INCLUDE curl/curl.h REQUIRED)
if(HEARTH_TESTS)
  find_package(GTest REQUIRED)
endif()

execute_process(COMMAND ${Python3_EXECUTABLE} -m nanobind --cmake_dir
                OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE)
find_package(nanobind CONFIG REQUIRED)

# The CMake config in torch's wheel requires a CUDA toolkit, so torch's two libraries are named
# here.
execute_process(
  COMMAND ${Python3_EXECUTABLE} -c
          "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
  OUTPUT_VARIABLE HEARTH_TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE)
option(HEARTH_TORCH "Build the device library where torch is installed" ON)
if(HEARTH_TORCH AND HEARTH_TORCH_DIR)
  add_library(hearth_torch INTERFACE)
  target_include_directories(hearth_torch SYSTEM INTERFACE
    ${HEARTH_TORCH_DIR}/include ${HEARTH_TORCH_DIR}/include/torch/csrc/api/include)
  target_link_libraries(hearth_torch INTERFACE
    ${HEARTH_TORCH_DIR}/lib/libtorch_cpu.so ${HEARTH_TORCH_DIR}/lib/libc10.so)
  target_link_options(hearth_torch INTERFACE -Wl,--allow-shlib-undefined)
else()
  set(HEARTH_TORCH OFF)
  message(STATUS "Without torch: the device library is left out")
endif()

# oneDNN for the Caffe engine: the headers and library of PyPI's package, which exists for x86_64
# only, or another installation of oneDNN 3.2 or newer.
option(HEARTH_CAFFE "Build the caffe and trainer modules" ON)
set(HEARTH_ONEDNN_PREFIX "" CACHE PATH "Where another oneDNN is installed than PyPI's")
if(HEARTH_CAFFE)
  if(NOT HEARTH_ONEDNN_PREFIX)
    execute_process(
      COMMAND ${Python3_EXECUTABLE} -c
              "import importlib.metadata as m; d = m.distribution('onednn-devel-cpu-gomp'); print(next(d.locate_file(f).resolve().parent for f in d.files if f.name == 'dnnl.hpp' and f.parent.name == 'include'))"
      OUTPUT_VARIABLE onednn_include OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    get_filename_component(HEARTH_ONEDNN_PREFIX ${onednn_include} DIRECTORY)
  endif()
  find_library(HEARTH_ONEDNN_LIBRARY NAMES libdnnl.so.3 dnnl PATHS ${HEARTH_ONEDNN_PREFIX} PATH_SUFFIXES lib lib/${CMAKE_LIBRARY_ARCHITECTURE}
               NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH NO_CACHE REQUIRED)
  get_filename_component(HEARTH_ONEDNN_LIBRARIES ${HEARTH_ONEDNN_LIBRARY} DIRECTORY)
  add_library(hearth_onednn INTERFACE)
  target_include_directories(hearth_onednn SYSTEM INTERFACE ${HEARTH_ONEDNN_PREFIX}/include)
  target_link_libraries(hearth_onednn INTERFACE ${HEARTH_ONEDNN_LIBRARY})
  # oneDNN and the engine must use the same OpenMP library.
  target_compile_options(hearth_onednn INTERFACE -fopenmp)
  target_link_options(hearth_onednn INTERFACE -fopenmp)
endif()
