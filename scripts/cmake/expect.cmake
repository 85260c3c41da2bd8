# SPDX-License-Identifier: Apache-2.0

# velo_add_test_that_prints(<name> [STATUS <status>] PATTERNS <regular expression>... COMMAND <path> [<argument>...])
#
# A test that must end with a status, 0 if none is named, and print what matches each pattern (of Python).
# In place of PASS_REGULAR_EXPRESSION, with which CTest does not look at the status.
set(velo_expect ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/support/expect.py)
function(velo_add_test_that_prints name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "STATUS" "PATTERNS;COMMAND")
    if(NOT arg_STATUS)
        set(arg_STATUS 0)
    endif()
    add_test(NAME ${name} COMMAND ${velo_expect} --status ${arg_STATUS} ${arg_PATTERNS} -- ${arg_COMMAND})
endfunction()
