# What differs between the kinds of packages. CPack reads it once for each kind that it makes.

set(processor ${CPACK_HAKMEM_PROCESSOR})
if(CPACK_GENERATOR STREQUAL "DEB")
    set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
    if(processor STREQUAL "aarch64")
        set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
    endif()
elseif(CPACK_GENERATOR STREQUAL "RPM")
    set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
    set(CPACK_RPM_PACKAGE_ARCHITECTURE ${processor})
else()
    # One directory that may be unpacked anywhere.
    set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
    set(CPACK_MONOLITHIC_INSTALL ON)
    set(CPACK_PACKAGE_FILE_NAME hakmem-${CPACK_PACKAGE_VERSION}-linux-${processor})
endif()
