/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/error.h"
#include "../base/fd.h"
#include "domain.h"
#include "doorbell.h"
#include "files.h"
#include "lives.h"
#include "registry.h"

#define PREFIX_BYTES (sizeof SEG_PREFIX - 1)
/* "velo." domain "+bcast." node "." vpid, and some room. */
#define NAME_BYTES 96u
/* Another user could fill the directory: past this many names the sweep does nothing. */
#define NAMES_MAX 16384u

/* Names of segments, and of the files by which their owners live. They take a fixed number of pages
 * of their own: the program's allocator must not do different things for different files in the
 * directory (see sim/preload/memory.c). */
struct names {
    size_t count;
    char name[NAMES_MAX][NAME_BYTES];
};

static size_t domain_bytes(const char *name) { return strcspn(name + PREFIX_BYTES, ".+"); }

static bool is_of_domain(const char *name, const char *domain)
{
    size_t len = domain_bytes(name);
    return strlen(domain) == len && memcmp(name + PREFIX_BYTES, domain, len) == 0;
}

/* Compare by domain: "velo.a+rma.0.1" and "velo.a.0.1" are of one, "velo.a-b.0.1" is of another. */
static int compare(const char *a, const char *b)
{
    size_t a_len = domain_bytes(a), b_len = domain_bytes(b);
    int order = memcmp(a + PREFIX_BYTES, b + PREFIX_BYTES, a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

/* Shell's sort, since the C library's sort allocates. */
static void sort(struct names *names)
{
    char moved[NAME_BYTES];
    for (size_t gap = names->count / 2; gap > 0; gap /= 2) {
        for (size_t i = gap; i < names->count; i++) {
            size_t at = i;
            memcpy(moved, names->name[i], NAME_BYTES);
            for (; at >= gap && compare(names->name[at - gap], moved) > 0; at -= gap)
                memcpy(names->name[at], names->name[at - gap], NAME_BYTES);
            memcpy(names->name[at], moved, NAME_BYTES);
        }
    }
}

static bool may_be_segment(const char *name)
{
    if (strncmp(name, SEG_PREFIX, PREFIX_BYTES) != 0 || strlen(name) >= NAME_BYTES)
        return false;
    size_t len = domain_bytes(name);
    return len > 0 && len <= VELO_DOMAIN_NAME_MAX && name[PREFIX_BYTES + len] != '\0';
}

static bool is_of_lives(const char *name)
{
    size_t at = PREFIX_BYTES + domain_bytes(name);
    return strncmp(name + at, LIVES_INFIX, sizeof LIVES_INFIX - 1) == 0;
}

static void sweep_doorbell(const struct sweep *sweep, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", sweep->dir, name) < (int)sizeof path)
        doorbell_sweep(path);
}

static int list(const struct sweep *sweep, struct names *names)
{
    int fd = fd_above_standard(open(sweep->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return velo_fail(VELO_ERR_ACCESS, "cannot list %s: %s", sweep->dir, strerror(error));
    }
    int status = VELO_OK;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        const char *name = entry->d_name;
        if (sweep->removes && strncmp(name, DOORBELL_PREFIX, sizeof DOORBELL_PREFIX - 1) == 0)
            sweep_doorbell(sweep, name);
        if (!may_be_segment(name) || (sweep->only && !is_of_domain(name, sweep->only)))
            continue;
        if (names->count == NAMES_MAX) {
            /* We know only some of a domain's segments, so not whether all of them are dead. */
            status = velo_fail(VELO_ERR_FULL, "%s has more than %u segments; name one domain",
                               sweep->dir, NAMES_MAX);
            break;
        }
        memcpy(names->name[names->count++], name, strlen(name) + 1);
    }
    closedir(dir);
    return status;
}

/* Look at a name's owner as it is now; also gives the path. */
static struct seg_look look_at(const struct sweep *sweep, const char *name, char path[PATH_MAX])
{
    struct seg_look found;
    (void)snprintf(path, PATH_MAX, "%s/%s", sweep->dir, name);
    seg_look(path, &found);
    return found;
}

static void look(const struct sweep *sweep, char (*name)[NAME_BYTES], size_t count,
                 struct velo_domain_view *view)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < count; i++) {
        if (is_of_lives(name[i]))
            continue;
        struct seg_look found = look_at(sweep, name[i], path);
        view->alive += found.owner == OWNER_LIVES;
        view->unknown += found.owner == OWNER_UNKNOWN;
        view->dead += found.owner == OWNER_IS_DEAD;
        view->memory_bytes += found.memory_bytes;
        if (sweep->is_hasty && view->alive + view->unknown > 0)
            break;
        if (found.owner == OWNER_IS_DEAD && found.is_mine) {
            view->removable++;
            view->removable_bytes += found.memory_bytes;
        }
    }
    if (view->alive + view->unknown > 0 && !sweep->in_living) {
        view->removable = 0;
        view->removable_bytes = 0;
    }
}

static void remove_dead(const struct sweep *sweep, char (*name)[NAME_BYTES], size_t count,
                        struct velo_domain_view *view)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < count; i++) {
        if (is_of_lives(name[i]))
            continue;
        struct seg_look found = look_at(sweep, name[i], path);
        if (found.owner != OWNER_IS_DEAD || !found.is_mine)
            continue;
        int status = seg_reclaim(path);
        view->removed += status == VELO_OK;
        view->failed += status && status != VELO_AGAIN && status != VELO_ERR_IN_USE;
    }
}

static void sweep_lives(const struct sweep *sweep, char (*name)[NAME_BYTES], size_t count)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < count; i++)
        if (is_of_lives(name[i]) &&
            snprintf(path, sizeof path, "%s/%s", sweep->dir, name[i]) < (int)sizeof path)
            lives_sweep(path);
}

static int visit(const struct sweep *sweep, char (*name)[NAME_BYTES], size_t count)
{
    char domain[VELO_DOMAIN_NAME_MAX + 1] = "";
    struct velo_domain_view view = {.name = domain};
    memcpy(domain, name[0] + PREFIX_BYTES, domain_bytes(name[0]));
    if (sweep->spared && strcmp(domain, sweep->spared) == 0)
        return VELO_OK;
    look(sweep, name, count, &view);
    if (sweep->removes && view.removable > 0)
        remove_dead(sweep, name, count, &view);
    if (sweep->removes)
        sweep_lives(sweep, name, count);
    if (!sweep->each || view.alive + view.unknown + view.dead == 0)
        return VELO_OK;
    return sweep->each(sweep->arg, &view);
}

int sweep_run(const struct sweep *sweep)
{
    struct names *names = mmap(NULL, sizeof *names, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (names == MAP_FAILED)
        return velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    int status = list(sweep, names);
    if (status == VELO_OK)
        sort(names);
    for (size_t from = 0, to; status == VELO_OK && from < names->count; from = to) {
        for (to = from + 1; to < names->count; to++)
            if (compare(names->name[from], names->name[to]) != 0)
                break;
        status = visit(sweep, &names->name[from], to - from);
    }
    munmap(names, sizeof *names);
    return status;
}

/* ---- by hand --------------------------------------------------------------------------------- */

int velo_clean(const struct velo_clean *clean,
               int (*each)(void *arg, const struct velo_domain_view *view), void *arg)
{
    struct seg_domain where = {0};
    int status = domain_init(&where, clean->domain, NULL);
    if (status)
        return status;
    struct sweep sweep = {.dir = where.dir,
                          .only = clean->domain,
                          .removes = clean->removes,
                          .in_living = clean->domain != NULL,
                          .each = each,
                          .arg = arg};
    seg_acquire();
    status = sweep_run(&sweep);
    seg_release();
    return status;
}
