# SPDX-License-Identifier: Apache-2.0
# The same programs by MPICH, which goes over the provider for libfabric. PML cm of Open MPI 4.1, which would go there,
# too, has faults of its own in persistent buffered sends. `velo bench` installs an MPICH into build/peers.
set(VELO_MPICH_ROOT "" CACHE PATH "Where an MPICH is whose programs are tested over the provider for libfabric")
set(root ${VELO_MPICH_ROOT})
if(NOT root)
    set(root ${PROJECT_BINARY_DIR}/peers/mpich)
endif()
if(NOT EXISTS ${root}/bin/mpicc OR NOT TARGET velo-fi OR VELO_SANITIZE)
    return()
endif()

# velo_add_mpich_program(<name> <source>...): compiled by MPICH's own compiler.
function(velo_add_mpich_program name)
    list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE sources)
    add_custom_command(OUTPUT ${name} COMMAND ${root}/bin/mpicc -O1 -g -D_GNU_SOURCE -o ${name} ${sources}
                       DEPENDS ${sources} ${CMAKE_CURRENT_SOURCE_DIR}/mpi_test.h VERBATIM)
    add_custom_target(${name}-built ALL DEPENDS ${name} velo-fi)
endfunction()

# velo_add_mpich_test(<name> <ranks> <program> [<argument>...])
function(velo_add_mpich_test name ranks program)
    add_test(NAME provider.${name} COMMAND ${velo_run} --mpi mpich --mpi-root ${root} -n ${ranks}
                                           ${CMAKE_CURRENT_BINARY_DIR}/${program} ${ARGN})
    set_tests_properties(provider.${name} PROPERTIES LABELS "full;mpi" TIMEOUT 240 PROCESSORS 2)
endfunction()

velo_add_mpich_program(velo-mpich-matching mpi_test.c matching.c)
foreach(name persistent_requests_start_again_and_again each_kind_of_persistent_send_sends_what_is_there_when_it_starts
        a_buffered_persistent_send_keeps_its_type_and_goes_with_others)
    velo_add_mpich_test(${name} 2 velo-mpich-matching ${name})
endforeach()
velo_add_mpich_program(velo-mpich-spawn spawn.c)
velo_add_mpich_test(what_children_had_is_given_back 1 velo-mpich-spawn 12 1)
velo_add_mpich_test(one_spawns_several 1 velo-mpich-spawn 2 2)
velo_add_mpich_test(several_spawn_one 2 velo-mpich-spawn 2 1)
velo_add_mpich_test(several_spawn_several 2 velo-mpich-spawn 2 2)
