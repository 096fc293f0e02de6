# Recipe for vcpkg: ../README.md says what was tried.
vcpkg_from_git(
    OUT_SOURCE_PATH SOURCE_PATH
    URL ADDRESS
    REF COMMIT
)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" GENERATOR Ninja)
vcpkg_cmake_build(TARGET library)
# The target `install` would build the command and the workloads as well.
foreach(component library development)
    foreach(kind rel dbg)
        set(prefix "${CURRENT_PACKAGES_DIR}")
        if(kind STREQUAL "dbg")
            string(APPEND prefix "/debug")
        endif()
        set(build "${CURRENT_BUILDTREES_DIR}/${TARGET_TRIPLET}-${kind}")
        if(EXISTS "${build}")
            vcpkg_execute_required_process(
                COMMAND "${CMAKE_COMMAND}" --install "${build}" --prefix "${prefix}"
                    --component "${component}"
                WORKING_DIRECTORY "${build}"
                LOGNAME "install-${component}-${TARGET_TRIPLET}-${kind}")
        endif()
    endforeach()
endforeach()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/hakmem)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
