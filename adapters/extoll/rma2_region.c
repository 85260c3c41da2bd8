/* SPDX-License-Identifier: Apache-2.0 */
/* What a region of rma2 says of its memory. */
#include "rma2_internal.h"

/* Its bytes, from the first that was registered. */
static uintptr_t first_of(const RMA2_Region *region)
{
    return (uintptr_t)region->start + region->offset;
}

static size_t len_of(const RMA2_Region *region) { return region->size - region->offset; }

RMA2_ERROR rma2_get_nla(RMA2_Region *region, size_t offset, RMA2_NLA *nla)
{
    if (!region || !nla || offset > len_of(region))
        return RMA2_ERR_INV_VALUE;
    *nla = region->nla + region->offset + offset;
    return RMA2_SUCCESS;
}

RMA2_ERROR rma2_get_va(RMA2_Region *region, size_t offset, void **address)
{
    if (!region || !address || offset > len_of(region))
        return RMA2_ERR_INV_VALUE;
    *address = (char *)region->start + region->offset + offset;
    return RMA2_SUCCESS;
}

RMA2_ERROR rma2_get_size(RMA2_Region *region, size_t *size)
{
    if (!region || !size)
        return RMA2_ERR_INV_VALUE;
    *size = len_of(region);
    return RMA2_SUCCESS;
}

RMA2_ERROR rma2_get_page_count(RMA2_Region *region, size_t *count)
{
    if (!region || !count)
        return RMA2_ERR_INV_VALUE;
    *count = region->size / PAGE_BYTES + (region->size % PAGE_BYTES != 0);
    return RMA2_SUCCESS;
}

RMA2_Bool rma2_get_region_contained(RMA2_Region *region, void *start, size_t size)
{
    if (!region || (uintptr_t)start < first_of(region))
        return 0;
    size_t before = (uintptr_t)start - first_of(region);
    return before <= len_of(region) && size <= len_of(region) - before;
}

RMA2_Bool rma2_get_region_overlap(RMA2_Region *region, void *start, size_t size)
{
    if (!region || size == 0 || len_of(region) == 0)
        return 0;
    uintptr_t first = first_of(region), from = (uintptr_t)start;
    return from <= first ? first - from < size : from - first < len_of(region);
}

RMA2_Bool rma2_get_region_equal(RMA2_Region *region, void *start, size_t size)
{
    return region && (uintptr_t)start == first_of(region) && size == len_of(region);
}
