// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Random calls to the driver by processes of one or two threads, killed now and then. They find no
 * error of the driver by what the calls return: the kernel must live through it, and nothing be
 * left. Run by root in a guest with a card, whose kernel should be one that checks itself.
 *
 *	fuzz [CALLS [SEED]]
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "support.h"

#define FILES 6
#define MAPS 16
#define AREA_PAGES 64ul
#define PROCESSES 3
#define CALLS_A_LIFE 2000

static volatile uint64_t *calls;

/* Of a process, whose threads share them. */
static int files[FILES];
static struct velo_card_take takes[FILES];
static char *area; /* of the system's pages, in which regions are of the card's */
static volatile uint32_t newest_page;

/* Of a thread, which faults when another one unmaps what it stores to. */
static __thread void *maps[MAPS];
static __thread size_t map_bytes[MAPS];

/* A number that the driver may take for a good one, or is near the end of something. */
static uint64_t any_number(void)
{
	switch (below(8)) {
	case 0:
		return random_number();
	case 1:
		return (1ull << below(64)) - below(2);
	case 2:
		return -below(3 * PAGE);
	default:
		return below(300);
	}
}

/*
 * Makes a call, mostly with a good struct, which begins with size and flags; else with another
 * size, with flags, with something behind what the driver knows, or somewhere else.
 */
static int make_call(int file, unsigned long call, void *known, uint32_t bytes)
{
	_Alignas(8) char at[2 * PAGE] = { 0 };
	uint32_t *size = (uint32_t *)at;
	int result;

	if (below(16) == 0)
		return ioctl(file, call, any_number());
	memcpy(at, known, bytes);
	*size = below(8) ? bytes : (uint32_t)(below(2) ? any_number() : below(sizeof(at)));
	if (below(16) == 0)
		size[1] |= (uint32_t)any_number();
	if (below(16) == 0)
		at[below(sizeof(at) - 8) + 8] = 1;
	result = ioctl(file, call, at);
	memcpy(known, at, bytes);
	return result;
}

static void take(unsigned int f)
{
	struct velo_card_take take = {
		.number = below(2) ? VELO_CARD_ANY : (uint32_t)any_number(),
		.store_lines = (uint32_t)any_number(),
	};

	if (make_call(files[f], VELO_CARD_TAKE, &take, sizeof(take)) == 0)
		takes[f] = take;
}

static void map(unsigned int f)
{
	unsigned int m = (unsigned int)below(MAPS), kind = (unsigned int)below(8);
	struct velo_card_take *take = &takes[f];
	uint64_t rest = 0;
	size_t bytes = PAGE << below(4);
	int protection = (int)below(4);
	uint64_t offset;

	if (maps[m] && below(2)) {
		munmap(maps[m], map_bytes[m]);
		maps[m] = NULL;
		return;
	}
	if (kind == VELO_CARD_TARGETS)
		rest = target_page(take->node, below(4) ? take->number : (uint32_t)below(256));
	else if (below(8) == 0)
		rest = any_number() << 12;
	offset = below(32) ? VELO_CARD_OFFSET(kind, rest) : random_number() << 12;
	if (maps[m])
		return;
	maps[m] = mmap(NULL, bytes, protection, below(16) ? MAP_SHARED : MAP_PRIVATE,
			     files[f], (off_t)offset);
	map_bytes[m] = bytes;
	if (maps[m] == MAP_FAILED)
		maps[m] = NULL;
}

static volatile sig_atomic_t faults;

/* The access is given up; so is the process, which has nothing else to do. */
static void fault(int number)
{
	(void)number;
	faults = 1;
	_exit(0);
}

static void touch(void)
{
	unsigned int m = (unsigned int)below(MAPS);
	volatile uint64_t *at = maps[m];

	if (!at)
		return;
	if (below(4)) {
		uint64_t word = below(2) ? velo_header_pack(0, (uint8_t)below(256), 8, 0, 0) :
					   any_number();
		unsigned int words = 1 + (unsigned int)below(8), i;

		at += below(8) * 8;
		for (i = 0; i < words; i++)
			at[i] = i ? any_number() : word;
	} else {
		(void)at[below(512)];
	}
}

static void memory(unsigned int f)
{
	uint64_t each = system_page() / PAGE, first = below(AREA_PAGES * each);
	uint64_t count = 1 + below(AREA_PAGES * each - first);
	struct velo_card_enter enter = {
		.address = below(16) ? (uintptr_t)area + first * PAGE : random_number(),
		.len_bytes = below(16) ? count * PAGE : any_number(),
		.rights = (uint32_t)below(9),
		.flags = (uint32_t)below(2),
		.peer = (uint32_t)(below(4) ? 0 : any_number()),
	};

	if (make_call(files[f], VELO_CARD_ENTER, &enter, sizeof(enter)) == 0)
		newest_page = enter.first_page;
}

static void withdraw(unsigned int f)
{
	struct velo_card_withdraw withdraw = { 0 };
	/* Also what the other thread is just about to enter. */
	uint32_t page = newest_page + (uint32_t)(below(2) ? 0 : below(2 * AREA_PAGES));

	if (below(8) == 0)
		page = (uint32_t)below(1 << 18);
	withdraw.first_page = page;
	make_call(files[f], VELO_CARD_WITHDRAW, &withdraw, sizeof(withdraw));
}

static void change_area(void)
{
	uint64_t first = below(AREA_PAGES), count = 1 + below(AREA_PAGES - first);
	size_t len_bytes = count * system_page();
	char *at = area + first * system_page();

	switch (below(4)) {
	case 0:
		mmap(at, len_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 1:
		madvise(at, len_bytes, MADV_DONTNEED);
		break;
	case 2:
		mprotect(at, len_bytes, below(2) ? PROT_READ : PROT_READ | PROT_WRITE);
		break;
	default:
		munmap(at, len_bytes);
	}
}

static void stay_or_fork(void)
{
	pid_t pid = fork();

	if (pid == 0 && below(2))
		_exit(0);
	if (pid > 0 && below(2))
		waitpid(pid, NULL, 0);
	if (pid > 0 && below(8) == 0)
		_exit(0); /* The child has our files. */
}

static void other_calls(unsigned int f)
{
	struct velo_card_arm arm = {
		.ring_head = (uint16_t)any_number(),
		.queue_head = (uint16_t)any_number(),
	};
	struct pollfd poll_file = { files[f], POLLIN, 0 };
	uint64_t line[8] = { velo_header_pack(0, 1, 8, 0, 0) };
	uint64_t rest = below(2) ? any_number() :
				   target_page(takes[f].node, takes[f].number) | 1 << 6;
	uint64_t offset = VELO_CARD_OFFSET(below(8), below(4) ? rest : 0);

	switch (below(6)) {
	case 0:
		make_call(files[f], VELO_CARD_ARM, &arm, sizeof(arm));
		break;
	case 1:
		poll(&poll_file, 1, 0);
		break;
	case 2:
		(void)!pread(files[f], line, below(2) ? 8 : below(64), (off_t)offset);
		break;
	case 3:
		(void)!pwrite(files[f], line, below(80) & ~(below(2) * 7), (off_t)offset);
		break;
	case 4:
		ioctl(files[f], (unsigned int)random_number(), any_number());
		break;
	default:
		lseek(files[f], (off_t)random_number(), SEEK_SET);
	}
}

static void make_calls(void)
{
	unsigned int i;

	for (i = 0; i < CALLS_A_LIFE; i++) {
		unsigned int f = (unsigned int)below(FILES), what = (unsigned int)below(100);

		__atomic_add_fetch(calls, 1, __ATOMIC_RELAXED);
		if (what < 8) {
			close(files[f]);
			files[f] = open(DEVICE, O_RDWR);
		} else if (what < 20) {
			take(f);
		} else if (what < 40) {
			map(f);
		} else if (what < 55) {
			touch();
		} else if (what < 65) {
			memory(f);
		} else if (what < 70) {
			withdraw(f);
		} else if (what < 75) {
			change_area();
		} else if (what < 76) {
			stay_or_fork();
		} else {
			other_calls(f);
		}
	}
}

static void *second_thread(void *seed)
{
	random_state = (uintptr_t)seed;
	make_calls();
	return NULL;
}

static void live(void)
{
	uintptr_t seed = random_number() | 1;
	pthread_t thread;
	unsigned int i;

	signal(SIGBUS, fault);
	signal(SIGSEGV, fault);
	area = mmap(NULL, AREA_PAGES * system_page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	for (i = 0; i < FILES; i++)
		files[i] = open(DEVICE, O_RDWR);
	if (below(2))
		pthread_create(&thread, NULL, second_thread, (void *)seed);
	make_calls();
	_exit(0);
}

/* Some processes at once, each killed after a while. */
static void generation(void)
{
	unsigned int i;

	for (i = 0; i < PROCESSES; i++) {
		uint64_t seed = random_number() | 1;

		if (fork() == 0) {
			random_state = seed;
			live();
		}
	}
	usleep((useconds_t)below(1000000));
	if (below(2))
		kill(0, SIGTERM);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

int main(int argc, char **argv)
{
	uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000, told = 0;
	unsigned int generations = 0;
	long lines;

	setvbuf(stdout, NULL, _IOLBF, 0);
	random_state = (argc > 2 ? strtoull(argv[2], NULL, 0) : 1) * 0x9e3779b97f4a7c15ull;
	calls = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	lines = sysfs_number("lines_free");
	while (*calls < wanted) {
		signal(SIGTERM, SIG_DFL);
		if (fork() == 0) {
			setpgid(0, 0);
			random_state += generations;
			prctl(PR_SET_CHILD_SUBREAPER, 1);
			generation();
			_exit(0);
		}
		while (waitpid(-1, NULL, 0) > 0)
			;
		random_number();
		generations++;
		CHECK(sysfs_number("contexts") == 0 && sysfs_number("pages") == 0);
		CHECK(sysfs_number("lines_free") == lines && sysfs_number("broken") == 0);
		if (failures)
			break;
		if (*calls / 100000 != told) {
			told = *calls / 100000;
			printf("%lu calls\n", (unsigned long)*calls);
		}
	}
	printf("%lu calls in %u generations, %u failed\n", (unsigned long)*calls, generations,
	       failures);
	return failures != 0 || checks == 0;
}
