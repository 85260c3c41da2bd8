# SPDX-License-Identifier: Apache-2.0

# The `velo` command without its environment: `velo run` needs only the standard library.
set(velo_command ${CMAKE_COMMAND} -E env PYTHONPATH=${PROJECT_SOURCE_DIR}/tools
                 PYTHONDONTWRITEBYTECODE=1 VELO_LIBEXEC=${PROJECT_BINARY_DIR}/libexec/velo
                 ${Python3_EXECUTABLE} -m velo)
set(velo_run ${velo_command} run)

# The sources of tests/mpi that run on each engine.
set(velo_mpi_test_sources atomics.c crowd.c datatypes.c matching.c onesided.c threads.c)

# velo_mpi_tests_of(<source>): sets `names` and `ranks`, two lists of one length, to the tests of a source of
# tests/mpi and to how many ranks each needs.
function(velo_mpi_tests_of source)
    set(path ${PROJECT_SOURCE_DIR}/tests/mpi/${source})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(STRINGS ${path} tests REGEX "^TEST\\(")
    list(TRANSFORM tests REPLACE "^TEST\\(([a-z0-9_]+), ([0-9]+)\\).*" "\\1" OUTPUT_VARIABLE names)
    list(TRANSFORM tests REPLACE "^TEST\\(([a-z0-9_]+), ([0-9]+)\\).*" "\\2" OUTPUT_VARIABLE ranks)
    set(names ${names} PARENT_SCOPE)
    set(ranks ${ranks} PARENT_SCOPE)
endfunction()
