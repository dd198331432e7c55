# Fuzz targets: one executable per tests/fuzz/fuzz_*.c, on libFuzzer.
file(GLOB fuzz_targets CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source ${fuzz_targets})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  target_link_libraries(${name} PRIVATE weir_static)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
