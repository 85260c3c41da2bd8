// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Threads of a process withdraw what another one is just entering, by guessing its number. The
 * thread that enters gets a number that the table can have, and a kernel that checks itself finds
 * nothing freed in use. Run by root in a guest with a card and two processors.
 *
 *	threads [TIMES]
 */
#include <pthread.h>

#include "support.h"

#define GUESSERS 3
/* Most entries that a table of pages can have. */
#define TABLE_PAGES_MAX (1u << 22)

static int file;
static volatile uint32_t guess;
static volatile bool guessing = true;
static unsigned long hits;

static void *withdraw_guessed(void *unused)
{
	uint32_t i;

	(void)unused;
	while (guessing)
		for (i = 0; i < GUESSERS; i++)
			if (context_withdraw(file, guess + i) == 0)
				__atomic_add_fetch(&hits, 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int times = argc > 1 ? (unsigned int)atoi(argv[1]) : 20000, entered = 0, i;
	pthread_t guessers[GUESSERS];
	struct velo_card_take take;
	char *at;

	setvbuf(stdout, NULL, _IOLBF, 0);
	file = context_open(&take);
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	for (i = 0; i < GUESSERS; i++)
		CHECK(pthread_create(&guessers[i], NULL, withdraw_guessed, NULL) == 0);
	while (entered < times) {
		uint32_t page;

		if (!CHECK(context_enter(file, at, PAGE, 3, &page) == 0) ||
		    !CHECK(page < TABLE_PAGES_MAX))
			break;
		entered++;
		guess = page + 1;
		context_withdraw(file, page);
	}
	guessing = false;
	for (i = 0; i < GUESSERS; i++)
		pthread_join(guessers[i], NULL);
	CHECK(hits > 0); /* Else the threads have not met. */
	close(file);
	CHECK(sysfs_number("pages") == 0);
	printf("%u entered, %lu withdrawn by guess, %u failed\n", entered, hits, failures);
	return failures != 0;
}
