# SPDX-License-Identifier: Apache-2.0
# Man pages from the public headers and the command's parser; the reference page of the layouts.

set(velo_man_dir ${PROJECT_BINARY_DIR}/man)
set(velo_man_stamp ${PROJECT_BINARY_DIR}/man.stamp)
set(velo_layout_page ${PROJECT_BINARY_DIR}/docs/reference/layout.md)
file(GLOB velo_public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/velo/*.h)
list(APPEND velo_public_headers ${PROJECT_SOURCE_DIR}/adapters/extoll/velo2.h
     ${PROJECT_SOURCE_DIR}/adapters/extoll/rma2.h)
list(TRANSFORM velo_public_headers PREPEND --header= OUTPUT_VARIABLE velo_man_headers)
set(velo_tools "")
foreach(folder velo bench papers vm generators)
    file(GLOB_RECURSE velo_tools_found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/${folder}/*.py)
    list(APPEND velo_tools ${velo_tools_found})
endforeach()
file(GLOB velo_examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
string(TIMESTAMP velo_man_date "%Y-%m-%d" UTC) # $SOURCE_DATE_EPOCH, if set

# A page of a call that no longer exists must not stay behind.
add_custom_command(
    OUTPUT ${velo_man_stamp}
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${velo_man_dir}
    COMMAND
        ${CMAKE_COMMAND} -E env PYTHONPATH=${PROJECT_SOURCE_DIR}/tools PYTHONDONTWRITEBYTECODE=1
        ${Python3_EXECUTABLE} -m generators.mangen ${velo_man_headers} --examples ${PROJECT_SOURCE_DIR}/examples --command velo.cli
        -o ${velo_man_dir} --version ${PROJECT_VERSION} --date ${velo_man_date}
    COMMAND ${CMAKE_COMMAND} -E touch ${velo_man_stamp}
    DEPENDS ${velo_public_headers} ${velo_tools} ${velo_examples}
    COMMENT "Man pages"
    VERBATIM)
add_custom_command(
    OUTPUT ${velo_layout_page}
    COMMAND ${Python3_EXECUTABLE} ${velo_specgen} ${velo_spec} --format md -o ${velo_layout_page}
    DEPENDS ${velo_spec} ${velo_specgen}
    COMMENT "Reference page of the layouts"
    VERBATIM)
add_custom_target(man ALL DEPENDS ${velo_man_stamp} ${velo_layout_page})

if(VELO_BUILD_TESTS)
    find_program(VELO_MANDOC mandoc REQUIRED)
    add_test(NAME man_pages_are_well_formed
             COMMAND sh -c "\"$1\" -T lint -W warning \"$2\"/man*/*" sh ${VELO_MANDOC} ${velo_man_dir})
    set_tests_properties(man_pages_are_well_formed PROPERTIES LABELS quick)
endif()
