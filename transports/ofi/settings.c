/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/base/fd.h"

/* An empty variable is as good as none. */
static const char *unless_empty(const char *value) { return value && *value ? value : NULL; }

static int read_secret_file(struct settings *settings, const struct velo_transport_calls *calls,
                            const char *path)
{
    struct stat st;
    int fd = fd_above_standard(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0)
        return calls->fail(VELO_ERR_ACCESS, "VELO_OFI_SECRET_FILE: cannot read %s: %s", path,
                           strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (st.st_mode & 077) != 0 ||
        st.st_uid != geteuid()) {
        close(fd);
        return calls->fail(VELO_ERR_ACCESS,
                           "VELO_OFI_SECRET_FILE: %s has to be a file of this user that no other "
                           "may read; chmod 600",
                           path);
    }
    ssize_t len = read(fd, settings->secret, sizeof settings->secret - 1);
    close(fd);
    if (len > 0)
        settings->secret[len] = '\0';
    return VELO_OK;
}

static int read_secret(struct settings *settings, const struct velo_transport_calls *calls)
{
    const char *text = unless_empty(getenv("VELO_OFI_SECRET")),
               *path = unless_empty(getenv("VELO_OFI_SECRET_FILE"));
    int status = VELO_OK;
    if (text)
        (void)strncat(settings->secret, text, sizeof settings->secret - 1);
    else if (path)
        status = read_secret_file(settings, calls, path);
    else
        status = calls->fail(VELO_ERR_ARG,
                             "transport ofi needs a secret that its peers have, too: set "
                             "VELO_OFI_SECRET, or VELO_OFI_SECRET_FILE to a file of mode 0600");
    if (status)
        return status;
    settings->secret_bytes = strcspn(settings->secret, "\r\n");
    settings->secret[settings->secret_bytes] = '\0';
    if (settings->secret_bytes < SECRET_BYTES_MIN || settings->secret_bytes > SECRET_BYTES_MAX)
        return calls->fail(VELO_ERR_ARG,
                           "the secret of transport ofi has to have %u to %u "
                           "characters",
                           SECRET_BYTES_MIN, SECRET_BYTES_MAX);
    return VELO_OK;
}

int settings_read(struct settings *settings, const struct velo_transport_calls *calls)
{
    settings->provider = unless_empty(getenv("VELO_OFI_PROVIDER"));
    settings->interface = unless_empty(getenv("VELO_OFI_INTERFACE"));
    int status = read_secret(settings, calls);
    return status ? status : patience_read(&settings->patience, "VELO_OFI_TIMEOUT_MS", calls);
}
