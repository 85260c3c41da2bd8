# SPDX-License-Identifier: Apache-2.0
# The `velo` command: build/bin/velo runs the Python package of this checkout; the installed one runs
# the installed package with the system's Python.

set(velo_libexec_dir ${CMAKE_INSTALL_LIBEXECDIR}/velo)
set(velo_python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
set(velo_package_dir ${PROJECT_SOURCE_DIR}/tools)
configure_file(scripts/cmake/velo.in ${PROJECT_BINARY_DIR}/bin/velo @ONLY
               FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                WORLD_READ WORLD_EXECUTE)

set(velo_python python3)
set(velo_package_dir "$prefix/${CMAKE_INSTALL_DATADIR}/velo")
configure_file(scripts/cmake/velo.in ${PROJECT_BINARY_DIR}/install/velo @ONLY)
