/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/base/fd.h"
#include "provider.h"

#define MAGIC 0x6f6c6576u /* "velo" */
#define VERSION 1u

_Static_assert(sizeof(struct vf_address) == 32, "layout");

/* FNV-1a. */
static uint64_t mix_hash(uint64_t hash, const void *data, size_t len_bytes)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < len_bytes; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

const char *vf_address_folder(void)
{
    const char *folder = getenv("VELO_SHM_DIR");
    return folder && *folder ? folder : "/dev/shm";
}

/* The machine's boot, the file system of the segments, and the domain: ports that share these see
 * each other, however their processes are contained. */
uint64_t vf_address_place(const char *domain)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    char boot[64];
    struct stat folder;
    int fd = fd_above_standard(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    ssize_t len = fd >= 0 ? read(fd, boot, sizeof boot) : 0;
    if (fd >= 0)
        (void)close(fd);
    if (len > 0)
        hash = mix_hash(hash, boot, (size_t)len);
    if (stat(vf_address_folder(), &folder) == 0) {
        hash = mix_hash(hash, &folder.st_dev, sizeof folder.st_dev);
        hash = mix_hash(hash, &folder.st_ino, sizeof folder.st_ino);
    }
    return mix_hash(hash, domain, strlen(domain));
}

void vf_address_make(struct vf_address *address, uint64_t place, const struct velo_port *port,
                     const struct velo_port *rma_port)
{
    *address = (struct vf_address){
        .magic = MAGIC,
        .version = VERSION,
        .place = place,
        .id = velo_port_id(port),
        .generation = velo_port_generation(port),
        .rma_id = rma_port ? velo_port_id(rma_port) : 0,
        .rma_generation = rma_port ? velo_port_generation(rma_port) : 0,
    };
}

void vf_address_make_any(struct vf_address *address, uint64_t place)
{
    *address =
        (struct vf_address){.magic = MAGIC, .version = VERSION, .place = place, .id = UINT32_MAX};
}

int vf_address_check(const struct vf_address *address, uint64_t place)
{
    if (address->magic != MAGIC || address->version != VERSION || address->reserved)
        return -FI_EINVAL;
    if (VELO_ID_NODE(address->id) > 255 || VELO_ID_NODE(address->rma_id) > 255)
        return -FI_EINVAL;
    return address->place == place ? 0 : -FI_EHOSTUNREACH;
}

const char *vf_address_str(const struct vf_address *address, char *buf, size_t *len)
{
    int needed = snprintf(
        buf, *len, "velo://%016llx/%u.%u/%u/%u.%u/%u", (unsigned long long)address->place,
        VELO_ID_NODE(address->id), VELO_ID_VPID(address->id), address->generation,
        VELO_ID_NODE(address->rma_id), VELO_ID_VPID(address->rma_id), address->rma_generation);
    *len = needed > 0 ? (size_t)needed + 1 : 0;
    return buf;
}

/* The next number of a text, and the character behind it. */
static bool take_number(const char **at, char end, int base, unsigned long long most,
                        unsigned long long *value)
{
    char *behind;
    if (!isxdigit((unsigned char)**at))
        return false;
    *value = strtoull(*at, &behind, base);
    if (behind == *at || *behind != end || *value > most)
        return false;
    *at = behind + (end != '\0');
    return true;
}

int vf_address_parse(const char *text, struct vf_address *address)
{
    static const char scheme[] = "velo://";
    unsigned long long place, node, vpid, generation, rma_node, rma_vpid, rma_generation;
    const char *at = text + sizeof scheme - 1;
    if (strncmp(text, scheme, sizeof scheme - 1) != 0 ||
        !take_number(&at, '/', 16, UINT64_MAX, &place) || !take_number(&at, '.', 10, 255, &node) ||
        !take_number(&at, '/', 10, 255, &vpid) ||
        !take_number(&at, '/', 10, UINT32_MAX, &generation) ||
        !take_number(&at, '.', 10, 255, &rma_node) || !take_number(&at, '/', 10, 255, &rma_vpid) ||
        !take_number(&at, '\0', 10, UINT32_MAX, &rma_generation))
        return -FI_EINVAL;
    *address = (struct vf_address){
        .magic = MAGIC,
        .version = VERSION,
        .place = place,
        .id = VELO_ID(node, vpid),
        .generation = (uint32_t)generation,
        .rma_id = VELO_ID(rma_node, rma_vpid),
        .rma_generation = (uint32_t)rma_generation,
    };
    return 0;
}
