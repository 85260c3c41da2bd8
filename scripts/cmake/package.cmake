# SPDX-License-Identifier: Apache-2.0
# Debian packages, one for each kind of user: `scripts/package` builds them. They are made of the
# components of install(); all but the simulator come from any build.
file(STRINGS include/velo/velo.h velo_version_line REGEX "define VELO_VERSION_TEXT")
string(REGEX REPLACE ".*\"([^\"]+)\".*" "\\1" velo_deb_version "${velo_version_line}")
string(REPLACE "-" "~" velo_deb_version "${velo_deb_version}") # 1.0.0~rc1 comes before 1.0.0.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME velo)
set(CPACK_PACKAGE_CONTACT "The velo authors <velo@invalid.invalid>")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL library devel tools)
if(TARGET mca_mtl_velo)
    list(APPEND CPACK_COMPONENTS_ALL openmpi)
endif()
if(TARGET velo-fi)
    list(APPEND CPACK_COMPONENTS_ALL libfabric)
endif()
if(TARGET velo_ofi)
    list(APPEND CPACK_COMPONENTS_ALL ofi)
endif()
if(VELO_BUILD_SIM)
    list(APPEND CPACK_COMPONENTS_ALL sim)
endif()
if(TARGET velo_driver_sources)
    list(APPEND CPACK_COMPONENTS_ALL driver)
endif()
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/scripts/cmake/package_files.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_VERSION ${velo_deb_version})
# Of ours, and not of Debian: that would be 1, and later.
set(CPACK_DEBIAN_PACKAGE_RELEASE 1~upstream2)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(velo_same "(= ${velo_deb_version}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

# velo_deb(COMPONENT PACKAGE SECTION DEPENDS RECOMMENDS SYNOPSIS TEXT)
function(velo_deb component package section depends recommends synopsis text)
    string(TOUPPER ${component} upper)
    foreach(
        pair IN ITEMS
        "NAME=${package}" "SECTION=${section}" "DEPENDS=${depends}" "RECOMMENDS=${recommends}")
        string(REGEX MATCH "^([A-Z]+)=(.*)$" _ "${pair}")
        set(CPACK_DEBIAN_${upper}_PACKAGE_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}" PARENT_SCOPE)
    endforeach()
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${synopsis}\n${text}" PARENT_SCOPE)
    set(CPACK_COMPONENT_${upper}_DESCRIPTION "${synopsis}\n${text}" PARENT_SCOPE)
endfunction()

set(velo_about
    "velo passes messages between processes of a machine through shared memory, with
one store a message, remote memory access and matched messages on top. There is
no daemon, no driver and no system call in between.
.
")
velo_deb(library libvelo1 libs "" "" "messages between processes at the speed of a cache line"
         "${velo_about}This package has the library, those for programs that were written for
EXTOLL, libvelo2 and librma2, and that for DIMMnet-2, libdimmnet.")
velo_deb(devel libvelo-dev libdevel "libvelo1 ${velo_same}" "" "messages between processes - development files"
         "${velo_about}This package has headers, static library and the man pages of all calls.")
velo_deb(tools velo-tools utils "python3 (>= 3.11), libvelo1 ${velo_same}"
         "python3-jinja2, python3-matplotlib" "messages between processes - measure and inspect"
         "${velo_about}This package has the command velo, which measures a machine, shows ports
while they are used, cleans up after the dead, and starts MPI programs over
velo. Pages with plots need the recommended packages.")
set(velo_openmpi_series "openmpi-bin (>= 4.1), openmpi-bin (<< 4.2~)")
if(VELO_OPENMPI_VERSION VERSION_GREATER_EQUAL 5)
    set(velo_openmpi_series "openmpi-bin (>= 5.0), openmpi-bin (<< 5.1~)")
endif()
velo_deb(openmpi openmpi-velo net "${velo_openmpi_series}, libvelo1 ${velo_same}"
         "velo-tools" "messages between processes - Open MPI components"
         "${velo_about}This package has components for Open MPI; 'velo run' of velo-tools starts
programs with them.")
velo_deb(libfabric libfabric-velo net "libfabric1" "velo-tools" "messages between processes - libfabric provider"
         "${velo_about}This package has a provider for libfabric, for MPICH, Intel MPI, Open MPI 5 and
other programs that use libfabric; 'velo run --mpi' of velo-tools starts MPI
programs with it.")
velo_deb(ofi velo-ofi net "libvelo1 ${velo_same}" "velo-tools" "messages between processes - between machines"
         "${velo_about}This package has the transport that carries messages to other machines, over
any network that libfabric reaches; 'velo run --host' of velo-tools starts MPI
programs over it.")
velo_deb(sim velo-sim science
         "velo-tools ${velo_same}, openmpi-velo ${velo_same}, libjemalloc2" "netpipe-openmpi"
         "messages between processes - simulated hardware"
         "${velo_about}This package has the simulator that runs MPI programs, unchanged and in
virtual time, over the network hardware that velo comes from.")
# What has moved from one package to another, or dpkg would not let the new one have it.
set(CPACK_DEBIAN_SIM_PACKAGE_BREAKS "velo-tools (<< 1.0.0~rc1-1~upstream2)") # share/velo/velo/cluster
set(CPACK_DEBIAN_SIM_PACKAGE_REPLACES ${CPACK_DEBIAN_SIM_PACKAGE_BREAKS})
velo_deb(driver velo-dkms kernel "dkms (>= 3), adduser" "" "messages between machines - driver of a card"
         "This package has the source of velo.ko, the Linux driver of cards with a velo node.
It is built for each kernel whose headers are installed. The group velo may use
cards.")
set(CPACK_DEBIAN_DRIVER_PACKAGE_ARCHITECTURE all)

# Debian wants a trigger.
file(WRITE ${PROJECT_BINARY_DIR}/install/triggers "activate-noawait ldconfig\n")
set(velo_shlibs)
foreach(name velo velo2 rma2 dimmnet)
    string(APPEND velo_shlibs "lib${name} ${PROJECT_VERSION_MAJOR} libvelo1 (>= ${velo_deb_version})\n")
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/install/shlibs "${velo_shlibs}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/install/triggers
                                               ${PROJECT_BINARY_DIR}/install/shlibs)
# What Python compiles where root runs the command is in no list of files.
file(WRITE ${PROJECT_BINARY_DIR}/install/prerm
     "#!/bin/sh\nset -e\nfind /usr/share/velo -name __pycache__ -type d -prune -exec rm -rf {} +\n")
file(CHMOD ${PROJECT_BINARY_DIR}/install/prerm
     PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_TOOLS_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/install/prerm)
set(CPACK_DEBIAN_SIM_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/install/prerm)
# As dh_dkms writes them.
foreach(script postinst prerm)
    configure_file(${PROJECT_SOURCE_DIR}/driver/debian/${script}.in
                   ${PROJECT_BINARY_DIR}/install/dkms/${script} @ONLY)
    file(CHMOD ${PROJECT_BINARY_DIR}/install/dkms/${script}
         PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
set(CPACK_DEBIAN_DRIVER_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/install/dkms/postinst
                                              ${PROJECT_BINARY_DIR}/install/dkms/prerm)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib
                                                ${PROJECT_BINARY_DIR}/lib/velo)
include(CPack)
