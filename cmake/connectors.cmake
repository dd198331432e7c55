# Connectors with a library of their own: connectors/<name> becomes weir-<name>.so, which stands on
# include/weir and on what libweir exports, exports weir_plugin_init alone, and is found by the loader that
# finds those of other people. So neither libweir nor the package weir needs that library.
set(weir_connector_map ${CMAKE_SOURCE_DIR}/src/connector.map)
set(weir_connectors)

# weir_connector(NAME PKGCONFIG-SPECS TEXT [FOLDER]): TEXT is the Debian package's one line. Without
# specs the connector has a package of its own for what its users bring: adbc loads their drivers.
macro(weir_connector name spec text)
  string(TOUPPER ${name} upper)
  set(connector_library)
  if(NOT "${spec}" STREQUAL "")
    pkg_check_modules(${upper} IMPORTED_TARGET ${spec})
    set(connector_library PkgConfig::${upper})
  endif()
  if("${spec}" STREQUAL "" OR ${upper}_FOUND)
    list(APPEND weir_connectors ${name})
    set(connector_folder connectors/${name})
    if(${ARGC} GREATER 3)
      set(connector_folder ${ARGV3})
    endif()
    file(GLOB connector_sources CONFIGURE_DEPENDS ${connector_folder}/*.c)
    # The objects apart, so that unit tests reach the inside.
    add_library(weir_${name}_objects OBJECT ${connector_sources})
    set_target_properties(weir_${name}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_include_directories(weir_${name}_objects PUBLIC include)
    target_link_libraries(weir_${name}_objects PUBLIC weir_options weir_connector_libraries ${connector_library})
    add_library(weir_${name} MODULE $<TARGET_OBJECTS:weir_${name}_objects>)
    target_link_libraries(weir_${name} PRIVATE weir weir_options weir_connector_libraries ${connector_library})
    target_link_options(weir_${name} PRIVATE LINKER:--version-script=${weir_connector_map} LINKER:--as-needed)
    if(NOT WEIR_SANITIZE)
      target_link_options(weir_${name} PRIVATE LINKER:-z,defs)
    endif()
    set_target_properties(weir_${name} PROPERTIES PREFIX weir- OUTPUT_NAME ${name} SUFFIX .so
      LINK_DEPENDS ${weir_connector_map} BUILD_RPATH_USE_ORIGIN ON INSTALL_RPATH "$ORIGIN/..")
    install(TARGETS weir_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weir COMPONENT ${name})
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME weir-${name})
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${text}")
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "weir (= ${PROJECT_VERSION})")
  else()
    message(STATUS "no ${spec}, so the connector ${name} is not built; './dev setup' installs what it needs")
  endif()
endmacro()
