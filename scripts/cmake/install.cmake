# SPDX-License-Identifier: Apache-2.0
# For `make install`: the library, its headers, pkg-config and CMake packages, the man
# pages, the velo command. Everything finds its files relative to itself, so the tree can be moved.

include(CMakePackageConfigHelpers)

install(
    TARGETS velo velo_static velo_headers
    EXPORT veloTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT devel)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/velo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT devel FILES_MATCHING PATTERN *.h)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/bindings/cpp/velo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT devel FILES_MATCHING PATTERN *.hpp)
install(FILES ${PROJECT_BINARY_DIR}/include/velo/spec.h ${PROJECT_BINARY_DIR}/include/velo/dimmnet_spec.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/velo COMPONENT devel)

install(
    TARGETS velo2 rma2 dimmnet
    EXPORT veloTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT devel)
set(velo_extoll ${PROJECT_SOURCE_DIR}/adapters/extoll)
install(FILES ${velo_extoll}/velo2.h ${velo_extoll}/velo2_mod.h ${velo_extoll}/rma2.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT devel)

set(velo_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/velo)
install(EXPORT veloTargets NAMESPACE velo:: DESTINATION ${velo_cmake_dir} COMPONENT devel)
configure_package_config_file(
    scripts/cmake/veloConfig.cmake.in ${PROJECT_BINARY_DIR}/install/veloConfig.cmake
    INSTALL_DESTINATION ${velo_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/install/veloConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/install/veloConfig.cmake
              ${PROJECT_BINARY_DIR}/install/veloConfigVersion.cmake DESTINATION ${velo_cmake_dir}
        COMPONENT devel)

set(velo_pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH velo_pc_to_prefix /prefix/${velo_pkgconfig_dir} /prefix)
foreach(package velo velo2 rma2 dimmnet)
    configure_file(scripts/cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/install/${package}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/install/${package}.pc DESTINATION ${velo_pkgconfig_dir}
            COMPONENT devel)
endforeach()

if(VELO_BUILD_MAN)
    install(DIRECTORY ${PROJECT_BINARY_DIR}/man/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT tools)
    install(DIRECTORY ${PROJECT_BINARY_DIR}/man/man3 ${PROJECT_BINARY_DIR}/man/man7
            DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT devel)
endif()
if(VELO_BUILD_BENCH)
    install(PROGRAMS ${PROJECT_BINARY_DIR}/install/velo DESTINATION ${CMAKE_INSTALL_BINDIR}
            COMPONENT tools)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/velo DESTINATION ${CMAKE_INSTALL_DATADIR}/velo
            COMPONENT tools PATTERN __pycache__ EXCLUDE PATTERN cluster EXCLUDE)
    # For `module load velo`.
    configure_file(scripts/cmake/module.in ${PROJECT_BINARY_DIR}/install/module @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/install/module RENAME ${PROJECT_VERSION}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/velo COMPONENT tools)
    # `velo sim`, `velo trace`, `velo paper` and `velo predict` come with the simulator.
    if(VELO_BUILD_SIM)
        install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/velo/cluster
                DESTINATION ${CMAKE_INSTALL_DATADIR}/velo/velo COMPONENT sim PATTERN __pycache__ EXCLUDE)
        install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/papers DESTINATION ${CMAKE_INSTALL_DATADIR}/velo
                COMPONENT sim PATTERN __pycache__ EXCLUDE)
        install(DIRECTORY ${PROJECT_SOURCE_DIR}/sim/hosts DESTINATION ${CMAKE_INSTALL_DATADIR}/velo
                COMPONENT sim)
        install(FILES ${velo_dissector} DESTINATION ${CMAKE_INSTALL_DATADIR}/velo/wireshark COMPONENT sim)
        # For figure 4 of `velo paper`, where `make rtl-bench` has run.
        install(FILES ${PROJECT_BINARY_DIR}/rtl-bench.json DESTINATION ${CMAKE_INSTALL_DATADIR}/velo
                COMPONENT sim OPTIONAL)
    endif()
endif()
if(VELO_BUILD_TESTS AND VELO_BUILD_MAN AND NOT VELO_SANITIZE)
    add_test(NAME installed_package_builds_a_program
             COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_install ${PROJECT_BINARY_DIR})
    set_tests_properties(installed_package_builds_a_program PROPERTIES LABELS full)
    add_test(NAME each_installed_command_works
             COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_install ${PROJECT_BINARY_DIR} --all)
    set_tests_properties(each_installed_command_works PROPERTIES LABELS nightly)
    add_test(NAME the_tarball_of_a_release_builds_without_git COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_dist)
    set_tests_properties(the_tarball_of_a_release_builds_without_git
                         PROPERTIES LABELS nightly TIMEOUT 900 PROCESSORS 2 SKIP_RETURN_CODE 77)
endif()
