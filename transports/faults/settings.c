/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 1000000000u

static uint32_t *number_of(struct settings *settings, const char *name, size_t len)
{
    const struct {
        const char *name;
        uint32_t *value;
    } numbers[] = {{"payload", &settings->payload}, {"delay_us", &settings->delay_us},
                   {"partial", &settings->partial}, {"full", &settings->full},
                   {"reorder", &settings->reorder}, {"die", &settings->die},
                   {"seed", &settings->seed}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strlen(numbers[i].name) == len && strncmp(numbers[i].name, name, len) == 0)
            return numbers[i].value;
    return NULL;
}

/* The name is part of a path. */
static bool read_over(struct settings *settings, const char *value, size_t len)
{
    if (len == 0 || len >= sizeof settings->over || memchr(value, '/', len))
        return false;
    memcpy(settings->over, value, len);
    settings->over[len] = '\0';
    return true;
}

static bool read_number(uint32_t *number, const char *value, size_t len)
{
    char *end;
    unsigned long read = strtoul(value, &end, 10);
    *number = (uint32_t)read;
    return len > 0 && end == value + len && read <= VALUE_MAX;
}

/* Read NAME=VALUE of this length. */
static bool read_one(struct settings *settings, const char *text, size_t len)
{
    size_t name_len = strcspn(text, "=");
    if (name_len >= len)
        return false;
    const char *value = text + name_len + 1;
    size_t value_len = len - name_len - 1;
    uint32_t *number = number_of(settings, text, name_len);
    if (number)
        return read_number(number, value, value_len);
    return name_len == strlen("over") && strncmp(text, "over", name_len) == 0 &&
           read_over(settings, value, value_len);
}

bool settings_read(struct settings *settings, const char *text, const char **wrong)
{
    *settings = (struct settings){0};
    while (text && *text) {
        size_t len = strcspn(text, ",");
        *wrong = text;
        if (!read_one(settings, text, len))
            return false;
        text += text[len] ? len + 1 : len;
    }
    return true;
}
