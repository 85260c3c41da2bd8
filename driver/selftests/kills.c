// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A process is killed at random points of what it does with a card: open, map, send, enter memory,
 * put. After each, nothing of it is left. Run by root in a guest with a card.
 *
 *	kills [TIMES [SEED]]
 *
 * The parent kills after a number of steps that the child tells in shared memory, and a random part
 * of the next one, so a point may lie inside a call.
 */
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "support.h"

#define STEPS_MAX 48

static volatile unsigned int *steps;

static void step(void)
{
	++*steps;
	sched_yield();
}


/* By the page, and where there is none by the kernel. */
static void store_or_write(int file, volatile uint64_t *page, uint64_t offset,
			   const uint64_t *words, unsigned int count)
{
	unsigned int i;

	if (page == MAP_FAILED)
		(void)!pwrite(file, words, count * 8, (off_t)offset);
	for (i = 0; page != MAP_FAILED && i < count; i++)
		page[i] = words[i];
}

/* What a process does, in a loop until it is killed. */
static void work(void)
{
	const size_t len = 16 * system_page();

	for (;;) {
		struct velo_card_take take;
		char *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		int file = context_open(&take), child;
		volatile uint64_t *target, *ring, *pointer, *descriptors;
		uint32_t from, to;
		uint64_t own = target_page(take.node, take.number), seen;
		uint64_t line[2] = { 0, 1 };
		unsigned int i;

		step();
		ring = context_map(file, VELO_CARD_RING, 0, take.ring_slots * 64ul, PROT_READ);
		pointer = context_map(file, VELO_CARD_RING_POINTER, 0, PAGE, PROT_WRITE);
		step();
		target = context_map(file, VELO_CARD_TARGETS, own, PAGE, PROT_WRITE);
		descriptors = context_map(file, VELO_CARD_DESCRIPTORS, 0, PAGE, PROT_WRITE);
		step();
		if (context_enter(file, at, len / 2, 3, &from) ||
		    context_enter(file, at + len / 2, len / 2, 3, &to))
			exit(1);
		step();
		for (i = 0; i < 4; i++) {
			uint64_t words[VELO_RMA_DESCRIPTOR_WORDS] = {
				velo_rma_descriptor_word0_pack(VELO_RMA_OP_PUT,
							       VELO_RMA_PLACE_REQUESTER |
							       VELO_RMA_PLACE_COMPLETER, 0,
							       (uint8_t)take.node,
							       (uint8_t)take.number, 1, len / 2),
				velo_registered_address_pack(0, from),
				velo_registered_address_pack(0, to),
			};

			line[0] = velo_header_pack(0, 1, 8, 0, 0);
			store_or_write(file, target == MAP_FAILED ? target : target + 8,
				       VELO_CARD_OFFSET(VELO_CARD_TARGETS, own | 1 << 6), line, 2);
			step();
			store_or_write(file, descriptors,
				       VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0), words,
				       VELO_RMA_DESCRIPTOR_WORDS);
			step();
			seen = ring[0] & 1;
			store_or_write(file, pointer, VELO_CARD_OFFSET(VELO_CARD_RING_POINTER, 0),
				       &seen, 1);
		}
		child = fork();
		if (child == 0)
			pause();
		step();
		context_withdraw(file, from);
		step();
		munmap(at + len / 2, system_page());
		step();
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		munmap(at, len);
		munmap((void *)ring, take.ring_slots * 64ul);
		if (maps_pages()) {
			munmap((void *)target, PAGE);
			munmap((void *)descriptors, PAGE);
			munmap((void *)pointer, PAGE);
		}
		close(file);
		step();
	}
}

static void kill_once(void)
{
	unsigned int at = (unsigned int)(random_number() % STEPS_MAX);
	struct timespec nap = { 0, (long)(random_number() % 200000) };
	int status = 0;
	pid_t pid;

	*steps = 0;
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		work();
	}
	setpgid(pid, pid);
	while (*steps < at && waitpid(pid, &status, WNOHANG) == 0)
		sched_yield();
	nanosleep(&nap, NULL);
	kill(-pid, SIGKILL); /* Its child, too. */
	while (waitpid(-1, &status, 0) > 0)
		CHECK(WIFSIGNALED(status));
}

int main(int argc, char **argv)
{
	unsigned int times = argc > 1 ? (unsigned int)atoi(argv[1]) : 500, i;
	long lines;

	setvbuf(stdout, NULL, _IOLBF, 0);
	random_state = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	steps = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	lines = sysfs_number("lines_free");
	/* Grandchildren are ours when their parent is killed. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return 1;
	for (i = 0; i < times; i++) {
		kill_once();
		CHECK(sysfs_number("contexts") == 0);
		CHECK(sysfs_number("pages") == 0);
		CHECK(sysfs_number("lines_free") == lines);
		CHECK(sysfs_number("broken") == 0);
	}
	printf("%u kills, %u checks, %u failed\n", times, checks, failures);
	return failures != 0 || checks == 0;
}
