# C tests: one executable per tests/TIER/test_*.c, each its own process with a time limit, labelled with
# its tier. A file that holds the words "ctest: threads" gets that label too; ThreadSanitizer runs those.
# "ctest: sim-small" marks a simulation that is quick enough for the sanitizers; "ctest: failing" brings an
# allocator that fails when it is told to (tests/unit/failing/failing.h), "ctest: failing calls" calls to the system
# that do (calls.h), "ctest: moving" a folder of files that move (tests/unit/moving/moving.h). "ctest: connector NAME"
# brings the inside of a connector that is a shared object of its own; without its library the test is not built.
pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
if(NOT CMOCKA_FOUND)
  message(STATUS "cmocka is missing, so no C tests are built; './dev setup --test' installs it")
endif()
set(sanitizer_options
  "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1:second_deadlock_stack=1")

# Shared objects with connectors, good and bad, for test_connector_registry.
set(unit_plugins)
foreach(name good two nulls many manysources nullsource badsource empty oldabi missing refuses noinit
    hollow nullstore nostores badstore shortstore)
  string(TOUPPER ${name} definition)
  add_library(weir_plugin_${name} MODULE tests/unit/plugins/plugin.c)
  set_target_properties(weir_plugin_${name} PROPERTIES
    PREFIX "weir-" OUTPUT_NAME ${name} SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/plugins)
  target_include_directories(weir_plugin_${name} PRIVATE include)
  target_link_libraries(weir_plugin_${name} PRIVATE weir_options)
  target_compile_definitions(weir_plugin_${name} PRIVATE PLUGIN_${definition})
  list(APPEND unit_plugins weir_plugin_${name})
endforeach()

set(timeout_unit 120)
set(timeout_sim 300)
set(timeout_conform 300)
foreach(tier unit sim conform)
  if(NOT CMOCKA_FOUND)
    break()
  endif()
  file(GLOB tier_tests CONFIGURE_DEPENDS tests/${tier}/test_*.c)
  file(GLOB tier_support CONFIGURE_DEPENDS tests/${tier}/support/*.c)
  set(support)
  if(tier_support)
    set(support weir_${tier}_support)
    add_library(${support} STATIC ${tier_support})
    target_link_libraries(${support} PUBLIC weir_static weir_nanoarrow_ipc PkgConfig::CMOCKA)
    target_include_directories(${support} PUBLIC tests/${tier})
    target_compile_definitions(${support} PUBLIC WEIR_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data"
      WEIR_TEST_TOOLS="${CMAKE_SOURCE_DIR}/tools")
  endif()
  foreach(source ${tier_tests})
    get_filename_component(name ${source} NAME_WE)
    file(STRINGS ${source} marks REGEX "ctest: ")
    set(connector)
    if(marks MATCHES "ctest: connector ([a-z0-9]+)")
      set(connector weir_${CMAKE_MATCH_1}_objects)
      if(NOT TARGET ${connector})
        continue()
      endif()
    endif()
    add_executable(${name} ${source})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_link_libraries(${name} PRIVATE ${connector} ${support} weir_static weir_nanoarrow_ipc PkgConfig::CMOCKA)
    target_include_directories(${name} PRIVATE tests/${tier})
    target_compile_definitions(${name} PRIVATE WEIR_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
    if(name STREQUAL "test_connector_registry")
      add_dependencies(${name} ${unit_plugins})
      target_compile_definitions(${name} PRIVATE WEIR_TEST_PLUGINS="${CMAKE_BINARY_DIR}/tests/plugins")
    endif()
    add_test(NAME ${name} COMMAND ${name})
    set(labels ${tier})
    foreach(mark threads sim-small)
      if(marks MATCHES "ctest: ${mark}")
        list(APPEND labels ${mark})
      endif()
    endforeach()
    if(marks MATCHES "ctest: failing calls")
      target_sources(${name} PRIVATE tests/${tier}/failing/calls.c)
      target_link_options(${name} PRIVATE LINKER:--wrap=dlsym,--wrap=dlopen,--wrap=weir_fault_hit)
    elseif(marks MATCHES "ctest: failing")
      target_sources(${name} PRIVATE tests/${tier}/failing/failing.c)
    elseif(marks MATCHES "ctest: moving")
      target_sources(${name} PRIVATE tests/${tier}/moving/moving.c)
    endif()
    set_tests_properties(${name} PROPERTIES
      LABELS "${labels}" TIMEOUT ${timeout_${tier}} ENVIRONMENT "${sanitizer_options}")
  endforeach()
endforeach()

# The simulation: coordinators against a world made of a seed. The small run is for sanitizers.
file(GLOB sim_sources CONFIGURE_DEPENDS tests/sim/*.c)
add_executable(sim ${sim_sources})
set_target_properties(sim PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(sim PRIVATE weir_static)
# A million schedules, in parts so that each core has its share: about a minute on two cores.
foreach(part RANGE 1 8)
  math(EXPR first "(${part} - 1) * 125000 + 1")
  math(EXPR last "${part} * 125000")
  add_test(NAME sim_${part} COMMAND sim --seeds ${first}..${last})
  set_tests_properties(sim_${part} PROPERTIES LABELS sim TIMEOUT 900)
endforeach()
add_test(NAME sim_small COMMAND sim --seeds 1..500)
set_tests_properties(sim_small PROPERTIES LABELS sim-small TIMEOUT 240)

# The protocol in Promela: every base holds, every mutation fails. Spin is looked for when it runs.
add_test(NAME model COMMAND ${CMAKE_SOURCE_DIR}/model/run.sh quick)
add_test(NAME model_full COMMAND ${CMAKE_SOURCE_DIR}/model/run.sh full)
set_tests_properties(model PROPERTIES LABELS model TIMEOUT 600 PROCESSORS 2)
set_tests_properties(model_full PROPERTIES LABELS model-full TIMEOUT 3600 PROCESSORS 2)

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
