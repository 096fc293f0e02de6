# The packages, which CPack makes of what `make install` installs: one list of files for all of
# them. The version is the project's; by_kind.cmake has what differs between the kinds, tidy.cmake
# what is done to the files. `make packages` runs it for every kind and processor (packages.py);
# by hand: cpack -G DEB, RPM or TGZ in the binary directory.

set(CPACK_PACKAGE_NAME hakmem)
set(CPACK_PACKAGE_VENDOR "The hakmem authors")
# Packages have to name an address, and the project has none: reports go where the source is.
set(CPACK_PACKAGE_CONTACT "The hakmem authors <hakmem@localhost.invalid>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library development command)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/by_kind.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/tidy.cmake)
# For those two scripts, which see nothing but what is named CPACK_.
set(CPACK_HAKMEM_SOURCES ${CMAKE_CURRENT_LIST_DIR})
set(CPACK_HAKMEM_STRIP ${CMAKE_STRIP})
set(CPACK_HAKMEM_PROCESSOR ${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_HAKMEM_MUSL ${HAKMEM_MUSL})

# The C library of the oldest system that the packages are for; wheel.py says so, too.
set(libc "libc6 (>= 2.35)")
set(version ${PROJECT_VERSION})
set(soname ${HAKMEM_SONAME_NUMBER})

# What packages are called and say of themselves stands in debian/control, once for all kinds.
set(control ${CMAKE_CURRENT_LIST_DIR}/debian/control)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${control})
function(hakmem_describe component package)
    file(READ ${control} text)
    string(FIND "${text}" "\nPackage: ${package}\n" begin)
    string(SUBSTRING "${text}" ${begin} -1 text)
    string(REGEX MATCH "\nDescription: ([^\n]*)((\n [^\n]*)+)" text "${text}")
    set(summary "${CMAKE_MATCH_1}")
    string(REPLACE "\n " "\n" text "${CMAKE_MATCH_2}")
    string(STRIP "${text}" text)
    string(REPLACE "\n.\n" "\n\n" plain "${text}")
    set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${package} PARENT_SCOPE)
    set(CPACK_DEBIAN_${component}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
    set(CPACK_RPM_${component}_PACKAGE_SUMMARY "${summary}" PARENT_SCOPE)
    set(CPACK_RPM_${component}_PACKAGE_DESCRIPTION "${plain}" PARENT_SCOPE)
endfunction()
hakmem_describe(LIBRARY libhakmem${soname})
hakmem_describe(DEVELOPMENT libhakmem-dev)
hakmem_describe(COMMAND hakmem)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "${libc}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libhakmem${soname} (= ${version})")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS
    "${libc}, libgcc-s1, libhakmem${soname} (= ${version})")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "python3, sqlite3, perl, xz-utils")
# dpkg calls ldconfig for who asks by a trigger; CPack would write scripts that call it.
file(WRITE ${PROJECT_BINARY_DIR}/package/debian/triggers "activate-noawait ldconfig\n")
file(WRITE ${PROJECT_BINARY_DIR}/package/debian/shlibs
    "libhakmem ${soname} libhakmem${soname} (>= ${version})\n"
    "libhakmem-hardened ${soname} libhakmem${soname} (>= ${version})\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
    "${PROJECT_BINARY_DIR}/package/debian/triggers;${PROJECT_BINARY_DIR}/package/debian/shlibs")

set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_MAIN_COMPONENT command)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_LIBRARY_PACKAGE_NAME hakmem-libs)
set(CPACK_RPM_DEVELOPMENT_PACKAGE_NAME hakmem-devel)
set(CPACK_RPM_DEVELOPMENT_PACKAGE_REQUIRES "hakmem-libs = ${version}-1")
set(CPACK_RPM_COMMAND_PACKAGE_NAME hakmem)
set(CPACK_RPM_COMMAND_PACKAGE_REQUIRES "hakmem-libs = ${version}-1")
set(CPACK_RPM_LIBRARY_POST_INSTALL_SCRIPT_FILE ${CMAKE_CURRENT_LIST_DIR}/ldconfig.sh)
set(CPACK_RPM_LIBRARY_POST_UNINSTALL_SCRIPT_FILE ${CMAKE_CURRENT_LIST_DIR}/ldconfig.sh)
# The scripts that some rows of `hakmem bench` run ask for nothing: a row whose program is missing
# is left out. The measuring library, which has the name of the other one inside, is nobody's
# dependency. The machine that builds is not named. What rpmbuild strips is for the processor of
# the package.
set(CPACK_RPM_SPEC_MORE_DEFINE "%define __requires_exclude_from ^/usr/share/hakmem/.*$
%define __provides_exclude_from ^/usr/libexec/hakmem/.*$
%define __strip ${CMAKE_STRIP}
%define __objdump ${CMAKE_OBJDUMP}
%define _buildhost localhost
%define use_source_date_epoch_as_buildtime 1
%define _build_id_links none")
# Directories of the system, which no package of ours owns.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /usr/libexec /usr/share/man /usr/share/man/man1 /usr/share/man/man3 /usr/share/man/man7
    /usr/share/bash-completion /usr/share/bash-completion/completions
    /usr/share/zsh /usr/share/zsh/site-functions
    /usr/share/fish /usr/share/fish/vendor_completions.d
    /usr/lib64/cmake /usr/lib64/pkgconfig /usr/lib/cmake /usr/lib/pkgconfig)

include(CPack)
