# Library, command, headers, and what lets others find them: find_package(weir), pkg-config.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME weir)
install(TARGETS weir EXPORT weir-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET weir_cli)
  install(TARGETS weir_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${WEIR_THIRD_PARTY}/licenses DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Manual pages and completions are what the built command says of itself.
find_package(Python3 COMPONENTS Interpreter)
if(TARGET weir_cli AND Python3_FOUND AND NOT WEIR_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  set(told ${CMAKE_BINARY_DIR}/told)
  list(TRANSFORM weir_connectors PREPEND weir_ OUTPUT_VARIABLE weir_connector_targets)
  add_custom_command(OUTPUT ${told}/configuration.md
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/docs.py --weir $<TARGET_FILE:weir_cli> --out ${told}
    DEPENDS weir_cli ${weir_connector_targets} ${CMAKE_SOURCE_DIR}/tools/docs.py VERBATIM)
  add_custom_target(weir_told ALL DEPENDS ${told}/configuration.md)
  install(FILES ${told}/man/weir.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${told}/man/weir-pipeline.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
  install(FILES ${told}/completions/weir.bash RENAME weir DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${told}/completions/_weir DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${told}/completions/weir.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

install(FILES packaging/weir@.service DESTINATION lib/systemd/system)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
install(EXPORT weir-targets NAMESPACE weir:: DESTINATION ${config_folder})
configure_package_config_file(packaging/weir-config.cmake.in ${CMAKE_BINARY_DIR}/weir-config.cmake
  INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/weir-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/weir-config.cmake ${CMAKE_BINARY_DIR}/weir-config-version.cmake
  DESTINATION ${config_folder})
file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(packaging/weir.pc.in ${CMAKE_BINARY_DIR}/weir.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/weir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# One archive with all; Debian packages weir and one for each connector that needs a library of its own.
set(CPACK_PACKAGE_NAME weir)
set(CPACK_COMPONENTS_ALL weir ${weir_connectors})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_WEIR_PACKAGE_NAME weir)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Delivers streams of Arrow record batches exactly once")
set(CPACK_PACKAGE_CONTACT "weir authors")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR})
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})   # libweir, for the connectors
list(TRANSFORM weir_connectors PREPEND weir- OUTPUT_VARIABLE connector_packages)
# libpq5 is loaded for `store: postgresql://...` alone
list(JOIN connector_packages ", " connector_packages)
set(CPACK_DEBIAN_WEIR_PACKAGE_SUGGESTS "libpq5, ${connector_packages}")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
include(CPack)
