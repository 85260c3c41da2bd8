/* SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/error.h"
#include "../base/fd.h"

#define RULES_BYTES_MAX 4096u
#define LINE_BYTES_MAX 256u

static bool is_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return len > 0 && len <= NETWORK_NAME_MAX && name[len] == '\0';
}

/* The index of a transport's name; -1: it is no name, or there are too many. */
static int index_of(struct network *network, const char *name)
{
    for (uint32_t i = 0; i < network->names_len; i++)
        if (strcmp(network->names[i], name) == 0)
            return (int)i;
    if (!is_name(name) || network->names_len == NETWORK_TRANSPORTS_MAX)
        return -1;
    strcpy(network->names[network->names_len], name); // NOLINT: is_name() has measured it
    return (int)network->names_len++;
}

/* A number up to a limit; -1: the text is no such number. */
static int read_number(const char *text, int limit)
{
    char *end;
    long value = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : -1;
    return value < 0 || value > limit || *end ? -1 : (int)value;
}

/* "N" or "N-M". */
static bool read_range(char *range, int *first, int *last)
{
    char *dash = strchr(range, '-');
    if (dash)
        *dash++ = '\0';
    *first = read_number(range, VELO_NODES - 1);
    *last = dash ? read_number(dash, VELO_NODES - 1) : *first;
    return *first >= 0 && *last >= *first;
}

static bool set_nodes(struct network *network, char *range, uint8_t index)
{
    int first, last;
    bool is_range = read_range(range, &first, &last);
    for (int i = first; is_range && i <= last; i++)
        network->nodes[i] = index;
    return is_range;
}

/* "NAME", "NAME:SERVICE", and for an address with colons "[ADDRESS]:SERVICE". */
static bool set_host(struct network *network, char *range, char *value)
{
    int first, last;
    int service = NETWORK_SERVICE;
    char *end = *value == '[' ? strchr(value, ']') : NULL;
    char *colon = strrchr(value, ':');
    if (end) {
        colon = end[1] == ':' ? end + 1 : NULL;
        if (end[1] != '\0' && !colon)
            return false;
        value++;
        *end = '\0';
    } else if (colon && strchr(value, ':') != colon) {
        colon = NULL; /* An address of version 6 without a service. */
    }
    if (colon) {
        *colon = '\0';
        service = read_number(colon + 1, NETWORK_SERVICE_MAX);
    }
    size_t len = strlen(value);
    if (!read_range(range, &first, &last) || service <= 0 || len == 0 || len > NETWORK_HOST_MAX ||
        network->hosts_len == VELO_NODES)
        return false;
    struct network_host *host = &network->hosts[network->hosts_len++];
    *host = (struct network_host){.first = (uint8_t)first, .service = (uint32_t)service};
    memcpy(host->name, value, len);
    for (int i = first; i <= last; i++)
        network->host_of[i] = (uint16_t)network->hosts_len;
    return true;
}

static bool set_key(struct network *network, char *key, const char *value)
{
    int spread = read_number(value, VELO_NODES);
    if (strcmp(key, "spread") == 0) {
        network->spread = (uint32_t)spread;
        return spread >= 0;
    }
    int index = index_of(network, value);
    if (index < 0)
        return false;
    if (strcmp(key, "own") == 0) {
        network->own = (uint8_t)index;
        return true;
    }
    if (strcmp(key, "others") == 0) {
        memset(network->nodes, index, sizeof network->nodes);
        return true;
    }
    return set_nodes(network, key, (uint8_t)index);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static int read_rules(struct network *network, const char *text)
{
    char rules[RULES_BYTES_MAX];
    if (strlen(text) >= sizeof rules)
        return velo_fail(VELO_ERR_ARG, "VELO_NETWORK is longer than %u characters; use a file",
                         RULES_BYTES_MAX - 1);
    strcpy(rules, text); // NOLINT: its length was looked at
    char *rest = rules;
    for (char *rule = strsep(&rest, ","); rule; rule = strsep(&rest, ",")) {
        char copy[64];
        (void)snprintf(copy, sizeof copy, "%s", rule);
        char others[] = "others";
        char *value = strchr(rule, '=');
        if (value)
            *value++ = '\0';
        if (!(value ? set_key(network, rule, value) : set_key(network, others, rule)))
            return velo_fail(VELO_ERR_ARG,
                             "VELO_NETWORK: '%s' is no rule; give NAME, NODE=NAME, NODE-NODE=NAME, "
                             "own=NAME or spread=N, separated by commas",
                             copy);
    }
    return VELO_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

static char *trim_blanks(char *text)
{
    text += strspn(text, " \t");
    size_t len = strlen(text);
    while (len > 0 && isspace((unsigned char)text[len - 1]))
        text[--len] = '\0';
    return text;
}

/* Take quotes off. False: there is only one. */
static bool unquote(char **text)
{
    size_t len = strlen(*text);
    if (**text != '"')
        return true;
    if (len < 2 || (*text)[len - 1] != '"')
        return false;
    (*text)[len - 1] = '\0';
    (*text)++;
    return !strchr(*text, '"');
}

enum table { TABLE_NONE, TABLE_NODES, TABLE_HOSTS };

/* Each table comes once. */
static bool begin_table(const char *line, enum table *table, uint32_t *seen)
{
    *table = strcmp(line, "[nodes]") == 0   ? TABLE_NODES
             : strcmp(line, "[hosts]") == 0 ? TABLE_HOSTS
                                            : TABLE_NONE;
    bool is_new = *table != TABLE_NONE && !(*seen & 1u << *table);
    *seen |= 1u << *table;
    return is_new;
}

/* Read one line, which stands in a table. */
static bool read_line(struct network *network, char *line, enum table *table, uint32_t *seen)
{
    char *comment = strchr(line, '#'); /* No name has a '#'. */
    if (comment)
        *comment = '\0';
    char *key = trim_blanks(line);
    if (*key == '\0')
        return true;
    if (*key == '[')
        return begin_table(key, table, seen);
    char *value = strchr(key, '=');
    if (!value)
        return false;
    *value++ = '\0';
    key = trim_blanks(key);
    value = trim_blanks(value);
    bool is_quoted = *value == '"';
    if (!unquote(&key) || !unquote(&value))
        return false;
    bool is_number = isdigit((unsigned char)*key);
    bool is_spread = strcmp(key, "spread") == 0;
    if (is_number != (*table != TABLE_NONE) || is_quoted == is_spread)
        return false;
    return *table == TABLE_HOSTS ? set_host(network, key, value) : set_key(network, key, value);
}

static int read_file(struct network *network, const char *path)
{
    char line[LINE_BYTES_MAX];
    enum table table = TABLE_NONE;
    uint32_t seen = 0;
    unsigned number_of_line = 0;
    int fd = fd_above_standard(open(path, O_RDONLY | O_CLOEXEC));
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return velo_fail(VELO_ERR_ACCESS, "VELO_NETWORK: cannot read %s: %s", path,
                         strerror(error));
    }
    int status = VELO_OK;
    while (status == VELO_OK && fgets(line, sizeof line, file)) {
        number_of_line++;
        char copy[LINE_BYTES_MAX];
        memcpy(copy, line, sizeof copy);
        if (!read_line(network, line, &table, &seen))
            status = velo_fail(
                VELO_ERR_ARG,
                "%s:%u: '%.60s' is no line of a map of nodes; give own, others or spread, "
                "or under [nodes] or [hosts] a node or a range of them",
                path, number_of_line, trim_blanks(copy));
    }
    (void)fclose(file);
    return status;
}

/* ---- the map --------------------------------------------------------------------------------- */

int network_init(struct network *network)
{
    const char *text = getenv("VELO_NETWORK");
    memset(network, 0, sizeof *network);
    (void)index_of(network, "shm");
    if (!text || !*text)
        return VELO_OK;
    return strchr(text, '/') ? read_file(network, text) : read_rules(network, text);
}

bool network_is_uniform(const struct network *network)
{
    uint32_t node = 0;
    while (node < VELO_NODES && network->nodes[node] == network->own)
        node++;
    return node == VELO_NODES;
}

uint32_t network_route(const struct network *network, velo_id_t port, velo_id_t peer)
{
    uint32_t node = network_node(network, peer);
    return node == network_node(network, port) ? network->own : network->nodes[node];
}

const char *network_host(const struct network *network, velo_id_t id, uint32_t *service)
{
    uint32_t node = network_node(network, id);
    if (node >= VELO_NODES || network->host_of[node] == 0)
        return NULL;
    const struct network_host *host = &network->hosts[network->host_of[node] - 1];
    *service =
        host->service + (node - host->first) * (1u << VELO_ADDRESS_VPID_BITS) + VELO_ID_VPID(id);
    return *service <= NETWORK_SERVICE_MAX ? host->name : NULL;
}
