# What libweir links. Bundled: nanoarrow, flatcc, yyjson (static, hidden, built once per compiler by
# tools/third_party.sh). The rest comes from the system. docs/dependencies.md says why each.
execute_process(
  COMMAND ${CMAKE_SOURCE_DIR}/tools/third_party.sh ${CMAKE_C_COMPILER}
  OUTPUT_VARIABLE WEIR_THIRD_PARTY OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE third_party_result)
if(NOT third_party_result EQUAL 0)
  message(FATAL_ERROR "tools/third_party.sh failed; the reason stands above. './dev setup' installs what it needs.")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS tools/third_party.sh)

find_package(PkgConfig REQUIRED)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3>=3.37)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto>=3.0)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(LZ4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(PQ REQUIRED libpq>=10)         # its header; the library is loaded when it is wanted
find_library(SNAPPY_LIBRARY snappy REQUIRED)     # Debian's package has no .pc file
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)      # inlined (XXH_INLINE_ALL), so not linked

set(third_party_lib ${WEIR_THIRD_PARTY}/lib)
add_library(weir_third_party INTERFACE)
target_include_directories(weir_third_party SYSTEM INTERFACE ${WEIR_THIRD_PARTY}/include ${XXHASH_INCLUDE} ${PQ_INCLUDE_DIRS})
target_link_libraries(weir_third_party INTERFACE
  ${third_party_lib}/libnanoarrow.a ${third_party_lib}/libflatcc.a ${third_party_lib}/libyyjson.a
  PkgConfig::YAML PkgConfig::SQLITE PkgConfig::CRYPTO PkgConfig::ZSTD PkgConfig::LZ4 PkgConfig::ZLIB
  ${SNAPPY_LIBRARY} ${CMAKE_DL_LIBS} m)

# nanoarrow's own IPC reader and writer: a second opinion in tests, not part of libweir.
add_library(weir_nanoarrow_ipc INTERFACE)
target_link_libraries(weir_nanoarrow_ipc INTERFACE ${third_party_lib}/libnanoarrow_ipc.a weir_third_party)

# What the command may use besides libweir: it prints and reads JSON, nothing more.
add_library(weir_cli_libraries INTERFACE)
target_include_directories(weir_cli_libraries SYSTEM INTERFACE ${WEIR_THIRD_PARTY}/include)
target_link_libraries(weir_cli_libraries INTERFACE ${third_party_lib}/libyyjson.a m)

# What connectors in shared objects of their own may use besides libweir and their library: the header of
# nanoarrow, which they carry themselves, and yyjson.
add_library(weir_connector_libraries INTERFACE)
target_include_directories(weir_connector_libraries SYSTEM INTERFACE ${WEIR_THIRD_PARTY}/include ${XXHASH_INCLUDE})
target_link_libraries(weir_connector_libraries INTERFACE
  ${third_party_lib}/libnanoarrow.a ${third_party_lib}/libyyjson.a m)
