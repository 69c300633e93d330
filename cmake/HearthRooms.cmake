# hearth_room(NAME [TORCH] [TESTS_ALONE] SOURCES ... [DEPS ...] [TESTS ...] [TEST_DEPS ...])
# One static library per room, named hearth_NAME, and one test program per room, hearth_NAME_test,
# built from the *_test.cc files that stand beside their sources. TESTS_ALONE: they measure time
# or use all cores, so ctest runs nothing beside them.
set(HEARTH_NATIVE_DIR ${CMAKE_BINARY_DIR}/native)
add_custom_target(hearth_room_tests)  # the test programs of all rooms

# libtorch's headers take half a minute: `first` has them compiled, all others with its flags use them.
# What is left to do per file takes as long as several files, so eight are compiled as one; hence no
# two files of such a room have one name in their anonymous namespaces (tools/check_names.py).
function(hearth_precompile target first)
  if(target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HEARTH_UNITY})
endfunction()

function(hearth_room name)
  cmake_parse_arguments(ROOM "TORCH;TESTS_ALONE" "" "SOURCES;DEPS;TESTS;TEST_DEPS" ${ARGN})
  add_library(hearth_${name} STATIC ${ROOM_SOURCES})
  target_include_directories(hearth_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(hearth_${name} PUBLIC ${ROOM_DEPS})
  if(ROOM_TORCH)
    hearth_precompile(hearth_${name} hearth_caffe <ATen/ATen.h> <fmt/format.h> <string> <vector> <memory>)
  endif()
  if(HEARTH_TESTS AND ROOM_TESTS)
    add_executable(hearth_${name}_test ${ROOM_TESTS})
    target_link_libraries(hearth_${name}_test PRIVATE hearth_${name} ${ROOM_TEST_DEPS}
                          GTest::gmock GTest::gtest_main)
    target_compile_definitions(hearth_${name}_test PRIVATE
                               HEARTH_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
    if(ROOM_TORCH)
      target_precompile_headers(hearth_${name}_test PRIVATE <ATen/ATen.h> <gmock/gmock.h> <gtest/gtest.h>)
      set_target_properties(hearth_${name}_test PROPERTIES UNITY_BUILD ${HEARTH_UNITY})
    endif()
    add_dependencies(hearth_room_tests hearth_${name}_test)
    add_test(NAME ${name} COMMAND hearth_${name}_test)
    set_tests_properties(${name} PROPERTIES TIMEOUT $<IF:$<BOOL:${HEARTH_SANITIZE}>,3600,300>)
    if(ROOM_TESTS_ALONE)
      set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
  endif()
endfunction()
