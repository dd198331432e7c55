# Library, command, headers, and what lets others find them: find_package(weir), pkg-config.
include(CMakePackageConfigHelpers)
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
  add_custom_command(OUTPUT ${told}/configuration.md
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/docs.py --weir $<TARGET_FILE:weir_cli> --out ${told}
    DEPENDS weir_cli ${CMAKE_SOURCE_DIR}/tools/docs.py VERBATIM)
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

set(CPACK_PACKAGE_NAME weir)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Delivers streams of Arrow record batches exactly once")
set(CPACK_PACKAGE_CONTACT "weir authors")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR})
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS libpq5)      # loaded for `store: postgresql://...` alone
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
include(CPack)
