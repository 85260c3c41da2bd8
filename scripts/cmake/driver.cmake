# SPDX-License-Identifier: Apache-2.0
# Sources of the kernel's driver for the package velo-dkms: those of driver/ and the headers that are
# made from spec/. `make -C driver` builds the module itself.
set(velo_driver_python ${Python3_EXECUTABLE})
if(EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
    set(velo_driver_python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
endif()
execute_process(
    COMMAND ${velo_driver_python} -c "import systemrdl"
    RESULT_VARIABLE velo_no_systemrdl OUTPUT_QUIET ERROR_QUIET)
if(velo_no_systemrdl)
    message(FATAL_ERROR "velo-dkms: its headers want Python's systemrdl; scripts/setup package brings it")
endif()

set(velo_driver ${PROJECT_SOURCE_DIR}/driver)
set(velo_driver_out ${PROJECT_BINARY_DIR}/driver)
add_custom_target(
    velo_driver_sources ALL
    COMMAND make --silent -C ${velo_driver} OUT=${velo_driver_out} PYTHON=${velo_driver_python} sources
    VERBATIM)

file(STRINGS include/velo/velo.h velo_driver_version REGEX "define VELO_VERSION_TEXT")
string(REGEX REPLACE ".*\"([^\"]+)\".*" "\\1" velo_driver_version "${velo_driver_version}")
configure_file(${velo_driver}/dkms.conf.in ${PROJECT_BINARY_DIR}/install/dkms.conf @ONLY)
set(velo_driver_to src/velo-${velo_driver_version})
install(DIRECTORY ${velo_driver}/ DESTINATION ${velo_driver_to} COMPONENT driver EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN *.[ch] PATTERN Makefile PATTERN selftests EXCLUDE
        PATTERN debian EXCLUDE)
install(FILES ${velo_driver_out}/generated/velo/spec.h ${velo_driver_out}/generated/velo/pcie_spec.h
              ${velo_driver_out}/generated/velo/regs.h
        DESTINATION ${velo_driver_to}/generated/velo COMPONENT driver EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_BINARY_DIR}/install/dkms.conf DESTINATION ${velo_driver_to}
        COMPONENT driver EXCLUDE_FROM_ALL)
install(FILES ${velo_driver}/60-velo.rules DESTINATION lib/udev/rules.d
        COMPONENT driver EXCLUDE_FROM_ALL)
