# SPDX-License-Identifier: Apache-2.0
# What Debian wants in every package beside what install() puts there: licence, changes, and man pages
# compressed. CPack runs it before it packs.
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
    string(TOUPPER ${component} upper)
    set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    set(root ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
    string(TIMESTAMP year "%Y" UTC)
    set(doc ${root}/share/doc/${package})
    file(
        WRITE ${doc}/copyright
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: velo

Files: *
Copyright: ${year} The velo authors
License: Apache-2.0
 On Debian systems, the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
    string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # $SOURCE_DATE_EPOCH, if set
    file(
        WRITE ${doc}/changelog.Debian
        "velo (${CPACK_DEBIAN_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * See CHANGELOG.md of the sources.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
    if(component STREQUAL library)
        # CPack writes scripts that call ldconfig, beside the trigger, and cannot be kept from it.
        file(WRITE ${root}/share/lintian/overrides/${package} "${package}: maintscript-calls-ldconfig\n")
    endif()
    file(GLOB_RECURSE pages ${root}/share/man/*.[137])
    execute_process(COMMAND gzip -9nf ${pages} ${doc}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
    file(GLOB archives ${root}/lib/*.a ${root}/lib/*/*.a)
    if(archives)
        execute_process(COMMAND strip -g ${archives} COMMAND_ERROR_IS_FATAL ANY)
    endif()
endforeach()
