# Debian compiles static libraries for programs. In a shared library, such code cannot refer to
# glibc's data symbols, so this links a copy in which they are renamed; hearth_standard_streams
# defines the new names.
add_library(hearth_standard_streams STATIC ${CMAKE_CURRENT_LIST_DIR}/portable/standard_streams.cc)
function(hearth_static_library variable file)
  find_library(found ${file} REQUIRED NO_CACHE)
  set(copy ${CMAKE_BINARY_DIR}/static/${file})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/static)
  if(${found} IS_NEWER_THAN ${copy})  # otherwise each configuration would relink everything
    execute_process(
      COMMAND ${CMAKE_OBJCOPY} --redefine-sym stderr=hearth_stderr
              --redefine-sym stdout=hearth_stdout ${found} ${copy}
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set(${variable} ${copy} PARENT_SCOPE)
endfunction()

# Binaries of a wheel run on any system with glibc 2.28 or newer (docs/decisions/062): they are
# linked against the symbols of glibc 2.28, and contain libstdc++ and Debian's libraries.
option(HEARTH_PORTABLE "Link for wheels: an old glibc, static libraries" OFF)
if(NOT HEARTH_PORTABLE)
  function(hearth_portable)
  endfunction()
  return()
endif()

set(HEARTH_GLIBC_STUBS ${CMAKE_BINARY_DIR}/glibc)
execute_process(
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/portable/glibc_stubs.py 2.28
          ${HEARTH_GLIBC_STUBS} ${CMAKE_C_COMPILER}
  COMMAND_ERROR_IS_FATAL ANY)
hearth_static_library(JPEG_LIBRARY libjpeg.a)
hearth_static_library(PNG_LIBRARY libpng16.a)
hearth_static_library(ZLIB_LIBRARY libz.a)
hearth_static_library(HEARTH_lmdb_LIBRARY liblmdb.a)
hearth_static_library(HEARTH_leveldb_LIBRARY libleveldb.a)
hearth_static_library(HEARTH_snappy_LIBRARY libsnappy.a)
list(APPEND HEARTH_leveldb_LIBRARY ${HEARTH_snappy_LIBRARY})
set(OPENSSL_USE_STATIC_LIBS ON)

add_library(hearth_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/portable/fmt.cc)
target_compile_definitions(hearth_fmt PRIVATE FMT_SHARED)
add_library(hearth_newer_glibc OBJECT ${CMAKE_CURRENT_LIST_DIR}/portable/newer_glibc.cc
                                      ${CMAKE_CURRENT_LIST_DIR}/portable/standard_streams.cc)
add_library(hearth_program_start OBJECT ${CMAKE_CURRENT_LIST_DIR}/portable/program_start.cc)

# hearth_portable(TARGET): links a target of the wheel for old systems. The device library uses
# torch's libstdc++.
function(hearth_portable target)
  target_link_options(${target} PRIVATE -L${HEARTH_GLIBC_STUBS} LINKER:--no-as-needed)
  target_link_libraries(${target} PRIVATE hearth_newer_glibc -lpthread -ldl -lrt)
  if(target STREQUAL hearth_device_torch)
    return()
  endif()
  target_link_options(${target} PRIVATE -static-libstdc++ LINKER:--exclude-libs,ALL
                      LINKER:--allow-shlib-undefined)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    target_link_libraries(${target} PRIVATE hearth_program_start)
    target_link_options(${target} PRIVATE LINKER:--wrap=__libc_start_main)
  endif()
endfunction()
