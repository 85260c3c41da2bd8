/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of rma2 for people. */
#include <inttypes.h>
#include <stdio.h>

#include "rma2.h"

static const struct {
    RMA2_ERROR error;
    const char *text;
} texts[] = {
    {RMA2_SUCCESS, "RMA2_SUCCESS: done"},
    {RMA2_ERR_ERROR, "RMA2_ERR_ERROR: something else; velo_last_error() may know more"},
    {RMA2_ERR_INV_HANDLE, "RMA2_ERR_INV_HANDLE: the handle is none of this port"},
    {RMA2_ERR_INV_PORT, "RMA2_ERR_INV_PORT: the port is not open"},
    {RMA2_ERR_INV_VALUE, "RMA2_ERR_INV_VALUE: a value is out of range"},
    {RMA2_ERR_NO_ROUTE, "RMA2_ERR_NO_ROUTE: there is no way to the node"},
    {RMA2_ERR_PORTS_USED, "RMA2_ERR_PORTS_USED: all 252 contexts of the node are in use"},
    {RMA2_ERR_NO_MEM, "RMA2_ERR_NO_MEM: out of memory or mappings"},
    {RMA2_NO_NOTI, "RMA2_NO_NOTI: no notification is there"},
    {RMA2_ERR_POLL_EXCEEDED, "RMA2_ERR_POLL_EXCEEDED: polling took too long"},
    {RMA2_ERR_WRONG_ARG, "RMA2_ERR_WRONG_ARG: an argument asks for what is not there"},
    {RMA2_ERR_NOT_YET, "RMA2_ERR_NOT_YET: it is still in use; try again"},
    {RMA2_ERR_NO_DESC_MEM,
     "RMA2_ERR_NO_DESC_MEM: there was no room for the operation in the time given"},
    {RMA2_ERR_NO_MATCH, "RMA2_ERR_NO_MATCH: no notification matches"},
    {RMA2_ERR_WRONG_CMD, "RMA2_ERR_WRONG_CMD: the command is none that can be posted so"},
    {RMA2_ERR_NO_DEVICE, "RMA2_ERR_NO_DEVICE: there is no such device"},
    {RMA2_ERR_NO_CONNECT, "RMA2_ERR_NO_CONNECT: the peer's port is not open, or gone"},
    {RMA2_ERR_INVALID_VERSION, "RMA2_ERR_INVALID_VERSION: the peer uses another version of velo"},
    {RMA2_ERR_IOCTL, "RMA2_ERR_IOCTL: a system call failed"},
    {RMA2_ERR_MMAP, "RMA2_ERR_MMAP: memory cannot be mapped"},
    {RMA2_ERR_FD, "RMA2_ERR_FD: the port's memory cannot be created"},
    {RMA2_ERR_MAP, "RMA2_ERR_MAP: memory cannot be mapped"},
    {RMA2_ERR_ATU, "RMA2_ERR_ATU: no memory is registered there"},
    {RMA2_ERR_MLOCKLIMIT, "RMA2_ERR_MLOCKLIMIT: too much memory is registered"},
};

static const char *text_of(RMA2_ERROR error)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].error == error)
            return texts[i].text;
    return "no result of this library";
}

void rma2_serror(RMA2_ERROR error, char *buffer, int length)
{
    if (buffer && length > 0)
        (void)snprintf(buffer, (size_t)length, "%s", text_of(error));
}

void rma2_perror(RMA2_ERROR error, const char *header)
{
    (void)fprintf(stderr, "%s%s%s\n", header ? header : "", header ? ": " : "", text_of(error));
}

static const char *const types[] = {"none",      "requester", "responder", "type 3",
                                    "completer", "type 5",    "type 6",    "type 7"};

/* The longest line is shorter. */
#define LINE_CHARS 256

void rma2_noti_sdump(RMA2_Notification *notification, char *text, int size)
{
    if (!text || size <= 0)
        return;
    (void)snprintf(text, (size_t)size,
                   "%s notification of command %" PRIu32 ": node %u, context %u, size %" PRIu32
                   ", class %u, error %u, words %#" PRIx64 " %#" PRIx64 "\n",
                   types[rma2_noti_get_notification_type(notification)],
                   rma2_noti_get_cmd(notification), rma2_noti_get_remote_nodeid(notification),
                   rma2_noti_get_remote_vpid(notification), rma2_noti_get_size(notification),
                   rma2_noti_get_notiput_class(notification), rma2_noti_get_error(notification),
                   notification->word0.value, notification->word1.value);
}

void rma2_noti_fdump(RMA2_Notification *notification, FILE *file)
{
    char line[LINE_CHARS];
    rma2_noti_sdump(notification, line, sizeof line);
    (void)fputs(line, file);
}

void rma2_noti_dump(RMA2_Notification *notification) { rma2_noti_fdump(notification, stdout); }
