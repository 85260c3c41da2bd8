# SPDX-License-Identifier: Apache-2.0

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
