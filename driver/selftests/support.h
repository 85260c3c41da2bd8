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

#include <linux/velo.h>

#include "velo/spec.h"
#include "velo/pcie_spec.h"

/* Of the card; those of the system may be larger. */
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
/*
 * Reads a file that is no longer than the text, whose end it marks. Returns the length; -1: it
 * cannot be read.
 */
ssize_t file_read(const char *path, char *text, size_t size);
/* 0, or the error. */
int file_write(const char *path, const char *text);
/* The same of a file of the card. */
int sysfs_write(const char *name, const char *text);
/* Removes the card, which forgets its place in the network. */
void card_pull_out(void);
/* Finds the card again, and gives it the place that it had. */
void card_plug_in(void);

/* Open the card and take any context. Ends the program if that fails. */
int context_open(struct velo_card_take *take);
int context_take(int file, uint32_t number, struct velo_card_take *take);
/* MAP_FAILED as mmap(). */
void *context_map(int file, unsigned int kind, uint64_t rest, size_t len_bytes, int protection);
int context_enter(int file, void *at, size_t len_bytes, uint32_t rights, uint32_t *first_page);
int context_withdraw(int file, uint32_t first_page);
/* 0: the ring has a slot, or the queue an entry, behind these; 1: poll() will tell; -1: error. */
int context_arm(int file, uint16_t ring_head, uint16_t queue_head);

/* Pages of the card, which may be a part of one of the system's. */
void *pages(unsigned int count);
size_t system_page(void);
/* Whether a process may have single pages of the card: larger ones of the system's are not mapped. */
bool maps_pages(void);
/* The signal that a store to a page ends with; 0: none. */
int store_signal(volatile uint64_t *at);

/*
 * A process of another user, who may open the card. It tests, says so by closing its end of a pipe,
 * and keeps what it has until it is told to end.
 */
struct user {
	pid_t pid;
	int until; /* written to: it ends */
};

struct user user_start(unsigned int number, void (*test)(void));
void user_end(struct user user);

/* A context, all that can be mapped of it, and a page to store to a target; else MAP_FAILED. */
struct port {
	int file;
	struct velo_card_take take;
	const volatile uint64_t *ring;
	volatile uint64_t *queue;
	volatile uint64_t *ring_pointer;
	volatile uint64_t *queue_pointer;
	volatile uint64_t *descriptors; /* for those who may send to everybody */
	volatile uint64_t *target;
	uint64_t target_page;
	uint16_t head;
	uint16_t queue_head;
};

/* Lines for stores that a port asks for: one that the host splits takes as many as it has words. */
#define PORT_LINES 8u

/* The target is on the same card; VELO_CARD_ANY: the context itself. */
void port_open(struct port *port, uint32_t to_context);
/* The same, with a number. */
void port_open_at(struct port *port, uint32_t number, uint32_t to_context);
/* The context itself, as a target. */
#define PORT_ITSELF UINT64_MAX
/* The same, to any target page and with lines; false: it failed, and @port has nothing. */
bool port_try(struct port *port, uint32_t number, uint32_t lines, uint64_t target);
void port_close(struct port *port);
/* From now on the kernel tells the card what was read. */
void pointers_unmap(struct port *port);
/* A store by the kernel, repeated as long as its lines are not free in time. */
bool write_patiently(struct port *port, const uint64_t *words, size_t len_bytes, off_t offset);
/* How many of its stores the card has dropped. */
uint32_t dropped(struct port *port);
/* Until the node has taken the stores of this card that were under way. */
void wait_until_taken(const struct port *port);
/* The same where the card may be reset meanwhile: false. */
bool try_until_taken(const struct port *port);
void store(volatile uint64_t *at, const uint64_t *line, unsigned int words);
/*
 * Sends a line to the port's target: by its page, and where there is none by the kernel, until the
 * card has it. Place: of a line in the page.
 */
void send_line(struct port *port, unsigned int place, const uint64_t *line, unsigned int words);
/* Tell the card what was read: by the page, and where there is none by the kernel. */
void ring_read_to(struct port *port, uint64_t head);
void queue_read_to(struct port *port, uint64_t head);
void make_line(uint64_t *line, uint8_t tag, unsigned int words);
/* The next line; one that the host has split comes in several slots. */
bool next_line(struct port *port, uint64_t *line, uint32_t *sender);
bool receive(struct port *port, uint8_t tag, unsigned int words, uint32_t from);
/* The next notification. */
bool notified(struct port *port, uint64_t *words);
/* Whether that is of a part of a descriptor; then those of its other parts are taken, too. */
bool was_split(struct port *port, const uint64_t *answer);
/* The error that a descriptor ends with, or -1. */
int post(struct port *port, const uint64_t *words);
int put(struct port *port, uint32_t from_page, uint32_t to_page, uint32_t len_bytes);
/* The same, into memory that another context of the card has entered. */
int put_to(struct port *port, uint32_t context, uint32_t from_page, uint32_t to_page,
	   uint32_t len_bytes);
/* Notifies another context of the card. */
int notify(struct port *port, uint32_t context);

/*
 * A simulated card shows its clock in its configuration space, which root alone may open. Of any
 * other card the time is that of the machine, as if the card's clock had CARD_MHZ.
 */
#define CARD_MHZ 100u
extern bool clock_is_the_card;
void clock_open(void);
/* Modulo 2^32. */
uint32_t cycle(void);
uint64_t now_ms(void);

/* Random numbers, of each thread its own. The thread sets its seed first, which is not 0. */
extern __thread uint64_t random_state;
uint64_t random_number(void);
/* From 0 on, below the limit. */
uint64_t below(uint64_t limit);

/* What a program tests, told as TAP. Each test leaves neither a context nor a page. */
struct test {
	const char *name;
	void (*run)(void); /* NULL: it cannot be run here */
};

/* What the program ends with. `only`: the name of the one to run, or NULL. */
int tests_run(const struct test *tests, unsigned int count, const char *only);

static inline uint64_t target_page(uint32_t node, uint32_t context)
{
	return (uint64_t)(node << 8 | context) << 12;
}

#endif
