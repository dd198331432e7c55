# C tests: one executable per tests/TIER/test_*.c, each its own process with a time limit, labelled with
# its tier. A file that holds the words "ctest: threads" gets that label too; ThreadSanitizer runs those.
# "ctest: sim-small" marks a simulation that is quick enough for the sanitizers.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
set(sanitizer_options
  "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1:second_deadlock_stack=1")
set(timeout_unit 60)
set(timeout_sim 300)
set(timeout_conform 300)
foreach(tier unit sim conform)
  file(GLOB tier_tests CONFIGURE_DEPENDS tests/${tier}/test_*.c)
  file(GLOB tier_support CONFIGURE_DEPENDS tests/${tier}/support/*.c)
  foreach(source ${tier_tests})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source} ${tier_support})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_link_libraries(${name} PRIVATE weir_static weir_nanoarrow_ipc PkgConfig::CMOCKA)
    target_include_directories(${name} PRIVATE tests/${tier})
    target_compile_definitions(${name} PRIVATE WEIR_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
    add_test(NAME ${name} COMMAND ${name})
    set(labels ${tier})
    file(STRINGS ${source} marks REGEX "ctest: ")
    foreach(mark threads sim-small)
      if(marks MATCHES "ctest: ${mark}")
        list(APPEND labels ${mark})
      endif()
    endforeach()
    set_tests_properties(${name} PROPERTIES
      LABELS "${labels}" TIMEOUT ${timeout_${tier}} ENVIRONMENT "${sanitizer_options}")
  endforeach()
endforeach()

# Header test: each public header compiles alone, as C11 and as C++17, without one warning. It is part
# of every build, so a header that leans on another one never gets far.
set(header_probes)
foreach(header ${weir_headers})
  get_filename_component(name ${header} NAME)
  foreach(language c cpp)
    set(probe ${CMAKE_BINARY_DIR}/headers/${name}.${language})
    file(CONFIGURE OUTPUT ${probe} CONTENT "#include <weir/${name}>\n#include <weir/${name}>\ntypedef int weir_probe;\n")
    list(APPEND header_probes ${probe})
  endforeach()
endforeach()
if(header_probes)
  add_library(weir_header_test OBJECT ${header_probes})
  target_include_directories(weir_header_test PRIVATE include)
  target_compile_options(weir_header_test PRIVATE -Wall -Wextra -pedantic -Werror)
endif()
