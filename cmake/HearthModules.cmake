# hearth_module(NAME [ENGINE] [TESTS_ALONE] SOURCES ... [DEPS ...] [TESTS ...] [TEST_DEPS ...])
# Defines a static library hearth_NAME and, from its *_test.cc files, the test program
# hearth_NAME_test. TESTS_ALONE: the tests measure time or use all cores, so ctest runs nothing else
# at the same time.
set(HEARTH_NATIVE_DIR ${CMAKE_BINARY_DIR}/native)
add_custom_target(hearth_module_tests)  # test programs of all modules
add_custom_target(hearth_quick)  # programs and libraries of `make test-quick`

# Precompiles the headers for the target `first`; other targets with the same flags reuse them.
function(hearth_precompile target first)
  if(target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
endfunction()

# Headers take most of a file's compile time, so up to eight files are compiled as one. Names in
# anonymous namespaces must therefore be unique within a module (tools/check_names.py).
function(hearth_unity target)
  get_target_property(files ${target} SOURCES)
  list(LENGTH files count)
  # Files per unit: the second argument, else at most eight, or six in tests. All units of a target
  # have about the same number of files, because a build waits for the largest unit.
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

function(hearth_module name)
  cmake_parse_arguments(MODULE "ENGINE;TESTS_ALONE" "" "SOURCES;DEPS;TESTS;TEST_DEPS" ${ARGN})
  set(support ${MODULE_SOURCES})
  list(FILTER support INCLUDE REGEX "testing/|_test\\.cc$")
  if(support)
    message(FATAL_ERROR "hearth_${name} would link ${support}, which is for tests: list it under TESTS")
  endif()
  add_library(hearth_${name} STATIC ${MODULE_SOURCES})
  target_include_directories(hearth_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(hearth_${name} PUBLIC ${MODULE_DEPS})
  if(MODULE_ENGINE)
    hearth_precompile(hearth_${name} hearth_caffe <fmt/format.h> <string> <vector> <memory>)
  endif()
  hearth_unity(hearth_${name})
  if(HEARTH_TESTS AND MODULE_TESTS)
    add_executable(hearth_${name}_test ${MODULE_TESTS})
    target_link_libraries(hearth_${name}_test PRIVATE hearth_${name} ${MODULE_TEST_DEPS}
                          GTest::gmock GTest::gtest_main)
    target_compile_definitions(hearth_${name}_test PRIVATE
                               HEARTH_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
    # Tests are compiled with -O1, because -O3 takes longer than it saves when they run.
    target_compile_options(hearth_${name}_test PRIVATE -O1)
    set(headers <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> <nlohmann/json.hpp>)
    if(MODULE_ENGINE)
      hearth_precompile(hearth_${name}_test hearth_caffe_test ${headers})
      # The tests load the device library with dlopen.
      set_target_properties(hearth_${name}_test PROPERTIES BUILD_RPATH ${HEARTH_NATIVE_DIR})
      if(TARGET hearth_device_torch)
        add_dependencies(hearth_${name}_test hearth_device_torch)
      endif()
    elseif(MODULE_DEPS)  # modules without dependencies lack fmt's compile flags
      hearth_precompile(hearth_${name}_test hearth_base_test ${headers})
    endif()
    hearth_unity(hearth_${name}_test)
    add_dependencies(hearth_module_tests hearth_${name}_test)
    add_test(NAME ${name} COMMAND hearth_${name}_test)
    set(timeout 300)
    if(HEARTH_SANITIZE)
      set(timeout 3600)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout})
    if(MODULE_TESTS_ALONE)
      set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    else()
      add_dependencies(hearth_quick hearth_${name}_test)
    endif()
  endif()
endfunction()
