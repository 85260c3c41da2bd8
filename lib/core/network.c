/* SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"

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
static int number(const char *text, int limit)
{
    char *end;
    long value = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : -1;
    return value < 0 || value > limit || *end ? -1 : (int)value;
}

/* "N" or "N-M". */
static bool set_nodes(struct network *network, char *range, uint8_t index)
{
    char *dash = strchr(range, '-');
    if (dash)
        *dash++ = '\0';
    int first = number(range, VELO_NODES - 1);
    int last = dash ? number(dash, VELO_NODES - 1) : first;
    for (int i = first; first >= 0 && i <= last; i++)
        network->nodes[i] = index;
    return first >= 0 && last >= first;
}

static bool set(struct network *network, char *key, const char *value)
{
    int spread = number(value, VELO_NODES);
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
        if (!(value ? set(network, rule, value) : set(network, others, rule)))
            return velo_fail(VELO_ERR_ARG,
                             "VELO_NETWORK: '%s' is no rule; give NAME, NODE=NAME, NODE-NODE=NAME, "
                             "own=NAME or spread=N, separated by commas",
                             copy);
    }
    return VELO_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

static char *trim(char *text)
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

/* Read one line; `nodes`: the line stands in that table. */
static bool read_line(struct network *network, char *line, bool *nodes)
{
    char *comment = strchr(line, '#'); /* No name has a '#'. */
    if (comment)
        *comment = '\0';
    char *key = trim(line);
    if (*key == '\0')
        return true;
    if (*key == '[') {
        bool is_nodes = !*nodes && strcmp(key, "[nodes]") == 0;
        *nodes = true;
        return is_nodes;
    }
    char *value = strchr(key, '=');
    if (!value)
        return false;
    *value++ = '\0';
    key = trim(key);
    value = trim(value);
    bool is_quoted = *value == '"';
    if (!unquote(&key) || !unquote(&value))
        return false;
    bool is_number = isdigit((unsigned char)*key);
    bool is_spread = strcmp(key, "spread") == 0;
    return is_number == *nodes && is_quoted != is_spread && set(network, key, value);
}

static int read_file(struct network *network, const char *path)
{
    char line[LINE_BYTES_MAX];
    bool nodes = false;
    unsigned number_of_line = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return velo_fail(VELO_ERR_ACCESS, "VELO_NETWORK: cannot read %s: %s", path,
                         strerror(errno));
    int status = VELO_OK;
    while (status == VELO_OK && fgets(line, sizeof line, file)) {
        number_of_line++;
        char copy[LINE_BYTES_MAX];
        memcpy(copy, line, sizeof copy);
        if (!read_line(network, line, &nodes))
            status = velo_fail(
                VELO_ERR_ARG,
                "%s:%u: '%.60s' is no line of a map of nodes; give own, others or spread, "
                "or under [nodes] a node or a range of them",
                path, number_of_line, trim(copy));
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
