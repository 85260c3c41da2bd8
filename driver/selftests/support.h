/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * For programs that test the driver in a guest: checks, and the calls that most tests make.
 */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "velo/spec.h"
#include "velo/pcie_spec.h"
#include "velo_card.h"

#define PAGE 4096ul
#define DEVICE "/dev/velo0"
#define SYSFS "/sys/class/velo/velo0/"

/* A check that fails is told, counted, and does not end the test. */
extern unsigned int checks, failures;
#define CHECK(condition) check(condition, #condition, __FILE__, __LINE__)
/* That a call fails, and with which error. */
#define CHECK_FAILS(call, error) check_fails((long)(call), error, #call, __FILE__, __LINE__)

bool check(bool holds, const char *what, const char *file, int line);
bool check_fails(long result, int error, const char *what, const char *file, int line);

/* A number in the card's folder of sysfs; -1: it cannot be read. */
long sysfs_number(const char *name);
/* The driver's parameter; -1: it cannot be read. */
long parameter_number(const char *name);
/* 0, or the error. */
int sysfs_write(const char *name, const char *text);

/* Open the card and take any context. Ends the program if that fails. */
int context_open(struct velo_card_take *take);
int context_take(int file, uint32_t number, struct velo_card_take *take);
/* MAP_FAILED as mmap(). */
void *context_map(int file, unsigned int kind, uint64_t rest, size_t len_bytes, int protection);
int context_enter(int file, void *at, size_t len_bytes, uint32_t rights, uint32_t *first_page);
int context_withdraw(int file, uint32_t first_page);

static inline uint64_t target_page(uint32_t node, uint32_t context)
{
	return (uint64_t)(node << 8 | context) << 12;
}

#endif
