# What is done to the files of a package before it is packed: the manual pages are compressed, and
# what the installation does not strip, since CMake did not build it, is stripped. Debian packages
# get the documents that Debian asks for.

set(staging ${CPACK_TEMPORARY_DIRECTORY})

# Every component has a directory of its own below it, or, in an archive, all are in one.
file(GLOB_RECURSE files ${staging}/*)
foreach(file ${files})
    if(file MATCHES "/(hakmem(-hardened)?\\.o|libhakmem(-hardened)?\\.a)$")
        execute_process(COMMAND ${CPACK_HAKMEM_STRIP} --strip-debug --enable-deterministic-archives
            ${file} COMMAND_ERROR_IS_FATAL ANY)
    elseif(file MATCHES "/bin/hakmem$")
        execute_process(COMMAND ${CPACK_HAKMEM_STRIP} ${file} COMMAND_ERROR_IS_FATAL ANY)
    elseif(file MATCHES "/man/man[1-8]/[^/]*[1-8]$")
        execute_process(COMMAND gzip -9n ${file} COMMAND_ERROR_IS_FATAL ANY)
    endif()
endforeach()

if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component ${CPACK_COMPONENTS_ALL})
    string(TOUPPER ${component} upper)
    set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    set(root ${staging}/${component}/usr)
    file(REMOVE ${root}/share/doc/hakmem/LICENSE)
    if(component STREQUAL "library")
        file(REMOVE_RECURSE ${root}/share/doc/hakmem)
    endif()
    set(documents ${root}/share/doc/${package})
    file(MAKE_DIRECTORY ${documents})
    file(COPY ${CPACK_HAKMEM_SOURCES}/debian/copyright DESTINATION ${documents})
    file(WRITE ${documents}/changelog "hakmem (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * CHANGELOG.md of the source has what changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
    execute_process(COMMAND gzip -9nf ${documents}/changelog COMMAND_ERROR_IS_FATAL ANY)
    if(EXISTS ${CPACK_HAKMEM_SOURCES}/debian/${package}.lintian-overrides)
        file(MAKE_DIRECTORY ${root}/share/lintian/overrides)
        configure_file(${CPACK_HAKMEM_SOURCES}/debian/${package}.lintian-overrides
            ${root}/share/lintian/overrides/${package} COPYONLY)
    endif()
endforeach()
