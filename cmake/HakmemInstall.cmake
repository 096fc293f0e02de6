# Installation: the three products, the headers, hakmem.pc, the CMake package and the licence.
# Everything is found relative to where it lies, so an installed tree may be moved. What programs
# run with is the component `library`; what they are built with, `development`.

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hakmem)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(TARGETS ${HAKMEM_PRODUCTS} EXPORT hakmem-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(FILES ${HAKMEM_OBJECTS} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/hakmem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

install(EXPORT hakmem-targets NAMESPACE hakmem:: DESTINATION ${package_dir})
configure_package_config_file(cmake/hakmem-config.cmake.in
    ${PROJECT_BINARY_DIR}/package/hakmem-config.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface; from then on only a major one.
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(compatibility SameMinorVersion)
else()
    set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/hakmem-config-version.cmake
    COMPATIBILITY ${compatibility})
install(FILES
    ${PROJECT_BINARY_DIR}/package/hakmem-config.cmake
    ${PROJECT_BINARY_DIR}/package/hakmem-config-version.cmake
    DESTINATION ${package_dir})

# The way from lib/pkgconfig up to the prefix, however deep the library directory is.
file(RELATIVE_PATH HAKMEM_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" HAKMEM_PC_TO_PREFIX "${HAKMEM_PC_TO_PREFIX}")
configure_file(cmake/hakmem.pc.in ${PROJECT_BINARY_DIR}/package/hakmem.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/hakmem.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
