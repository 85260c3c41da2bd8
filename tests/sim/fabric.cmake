# SPDX-License-Identifier: Apache-2.0
# libfabric's interface on simulated nodes: ranks that meet over it, and the suite of ofi/test.
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBFABRIC REQUIRED IMPORTED_TARGET libfabric)
if(TARGET mca_mtl_velo)
    # Open MPI's mpirun starts it; it calls no MPI.
    add_executable(velo-sim-fabric fabric.c)
    target_link_libraries(velo-sim-fabric PRIVATE velo PkgConfig::LIBFABRIC)
    add_test(NAME sim.libfabric_repeats_itself_to_the_message
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/fabric.py
                     ${PROJECT_BINARY_DIR}/bin/velo $<TARGET_FILE:velo-sim-fabric>)
    set_tests_properties(sim.libfabric_repeats_itself_to_the_message PROPERTIES LABELS quick TIMEOUT 300)
endif()
