/* SPDX-License-Identifier: Apache-2.0 */
#include "common/compat.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/base.h"

int velo_ompi_announce(const mca_base_component_t *component, const void *data, size_t len_bytes)
{
    char *key = mca_base_component_to_string(component);
    if (key == NULL) /* Open MPI's own macro does not look. */
        return OPAL_ERR_OUT_OF_RESOURCE;
    int rc;
    OPAL_MODEX_SEND_STRING(rc, VELO_OMPI_GLOBAL, key, data, len_bytes);
    free(key);
    return rc;
}

#if OPAL_MAJOR_VERSION >= 5

bool velo_ompi_number(const char *key, uint32_t *number)
{
    int rc;
    *number = 0;
    OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, key, &OPAL_PROC_MY_NAME, &number, PMIX_UINT32);
    return rc == OPAL_SUCCESS;
}

/* FAMILY@N, as PRRTE names its jobs; other launchers spawn none, and give no number. */
static const char *find_number(void) { return strrchr(opal_process_info.myprocid.nspace, '@'); }

uint32_t velo_ompi_hosts(void)
{
    uint32_t hosts;
    return velo_ompi_number(PMIX_NUM_NODES, &hosts) && hosts > 0 ? hosts : 1;
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

#else

int velo_ompi_get(const opal_process_name_t *process, const char *key, const char *how,
                  void **value, opal_data_type_t type)
{
    opal_value_t question, *found = NULL;
    opal_list_t questions;
    OBJ_CONSTRUCT(&questions, opal_list_t);
    OBJ_CONSTRUCT(&question, opal_value_t);
    question.key = (char *)(uintptr_t)how;
    question.type = OPAL_BOOL;
    question.data.flag = true;
    opal_list_append(&questions, &question.super);
    int rc = opal_pmix.get(process, key, &questions, &found);
    if (rc == OPAL_SUCCESS)
        rc = found != NULL ? opal_value_unload(found, value, type) : OPAL_ERR_NOT_FOUND;
    if (found != NULL)
        OBJ_RELEASE(found);
    (void)opal_list_remove_first(&questions);
    question.key = NULL; /* Not to be freed. */
    OBJ_DESTRUCT(&question);
    OBJ_DESTRUCT(&questions);
    return rc;
}

bool velo_ompi_number(const char *key, uint32_t *number)
{
    *number = 0;
    return velo_ompi_get(&OPAL_PROC_MY_NAME, key, OPAL_PMIX_OPTIONAL, (void **)&number,
                         OPAL_UINT32) == OPAL_SUCCESS;
}

#endif
