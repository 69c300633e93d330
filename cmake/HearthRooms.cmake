# hearth_room(NAME [ENGINE] [TESTS_ALONE] SOURCES ... [DEPS ...] [TESTS ...] [TEST_DEPS ...])
# One static library per room, named hearth_NAME, and one test program per room, hearth_NAME_test,
# built from the *_test.cc files that stand beside their sources. TESTS_ALONE: they measure time
# or use all cores, so ctest runs nothing beside them.
set(HEARTH_NATIVE_DIR ${CMAKE_BINARY_DIR}/native)
add_custom_target(hearth_room_tests)  # the test programs of all rooms

# `first` has the headers compiled, all others with its flags use them.
function(hearth_precompile target first)
  if(target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
endfunction()

# Headers take longer than what is a file's own: half of the time of most rooms. So eight files are
# compiled as one; hence no two files of a room have one name in their anonymous namespaces
# (tools/check_names.py).
function(hearth_unity target)
  get_target_property(files ${target} SOURCES)
  list(LENGTH files count)
  # At most eight, six in tests, or the second argument. All units of a target have the same number
  # of files, because a developer waits for the largest one.
  set(most 8)
  if(ARGC GREATER 1)
    set(most ${ARGV1})
  elseif(target MATCHES "_test$")
    set(most 6)
  endif()
  if(count GREATER 1)
    math(EXPR units "(${count} + ${most} - 1) / ${most}")
    math(EXPR size "(${count} + ${units} - 1) / ${units}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${HEARTH_UNITY}
                          UNITY_BUILD_BATCH_SIZE ${size})
  endif()
endfunction()

function(hearth_room name)
  cmake_parse_arguments(ROOM "ENGINE;TESTS_ALONE" "" "SOURCES;DEPS;TESTS;TEST_DEPS" ${ARGN})
  add_library(hearth_${name} STATIC ${ROOM_SOURCES})
  target_include_directories(hearth_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(hearth_${name} PUBLIC ${ROOM_DEPS})
  if(ROOM_ENGINE)
    hearth_precompile(hearth_${name} hearth_caffe <fmt/format.h> <string> <vector> <memory>)
  endif()
  hearth_unity(hearth_${name})
  if(HEARTH_TESTS AND ROOM_TESTS)
    add_executable(hearth_${name}_test ${ROOM_TESTS})
    target_link_libraries(hearth_${name}_test PRIVATE hearth_${name} ${ROOM_TEST_DEPS}
                          GTest::gmock GTest::gtest_main)
    target_compile_definitions(hearth_${name}_test PRIVATE
                               HEARTH_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
    # Tests run once or twice: what -O3 saves them is less than it costs.
    target_compile_options(hearth_${name}_test PRIVATE -O1)
    set(headers <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> <nlohmann/json.hpp>)
    if(ROOM_ENGINE)
      hearth_precompile(hearth_${name}_test hearth_caffe_test ${headers})
      # By which the loader finds the device library.
      set_target_properties(hearth_${name}_test PROPERTIES BUILD_RPATH ${HEARTH_NATIVE_DIR})
      if(TARGET hearth_device_torch)
        add_dependencies(hearth_${name}_test hearth_device_torch)
      endif()
    elseif(ROOM_DEPS)  # else it has not the flags of fmt
      hearth_precompile(hearth_${name}_test hearth_base_test ${headers})
    endif()
    hearth_unity(hearth_${name}_test)
    add_dependencies(hearth_room_tests hearth_${name}_test)
    add_test(NAME ${name} COMMAND hearth_${name}_test)
    set(timeout 300)
    if(HEARTH_SANITIZE)
      set(timeout 3600)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout})
    if(ROOM_TESTS_ALONE)
      set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
  endif()
endfunction()
