/* SPDX-License-Identifier: Apache-2.0 */
#include "common/compat.h"

#include <stdlib.h>
#include <string.h>

#if OPAL_MAJOR_VERSION >= 5

/* FAMILY@N, as PRRTE names its jobs; other launchers spawn none, and give no number. */
static const char *find_number(void) { return strrchr(opal_process_info.myprocid.nspace, '@'); }

uint32_t velo_ompi_hosts(void)
{
    uint32_t hosts = 1, *found = &hosts;
    int rc;
    OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, PMIX_NUM_NODES, &opal_process_info.my_name, &found,
                                   PMIX_UINT32);
    return rc == OPAL_SUCCESS && hosts > 0 ? hosts : 1;
}

uint32_t velo_ompi_family(void)
{
    const char *name = opal_process_info.myprocid.nspace, *number = find_number();
    size_t len = number != NULL ? (size_t)(number - name) : strlen(name);
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a. */
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT32_C(16777619);
    return hash;
}

uint32_t velo_ompi_job(void)
{
    const char *number = find_number();
    unsigned long job = number != NULL ? strtoul(number + 1, NULL, 10) : 1;
    return job > 0 && job <= UINT16_MAX ? (uint32_t)job : 1;
}

#endif
