// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Threads of a process withdraw what another one is just entering, by guessing its number. The
 * thread that enters gets a number that the table can have, and a kernel that checks itself finds
 * nothing freed in use. Run by root in a guest with a card.
 *
 * They meet within a call where there are two processors, and on one where the kernel preempts it.
 * So that the guesses are known to be good ones on each machine, of each eighth region the
 * withdrawal is left to the guessers.
 *
 *	threads [TIMES]
 */
#include <pthread.h>
#include <sched.h>

#include "support.h"

#define GUESSERS 3
/* Most entries that a table of pages can have. */
#define TABLE_PAGES_MAX (1u << 22)
/*
 * Times that the processor is left to the guessers, of which one will do, before it is said that
 * they guess wrong.
 */
#define YIELDS_MAX 1000000

static int file;
static volatile uint32_t guess;
static volatile bool guessing = true;

/* The page that each guesser has withdrawn last, and how many all have. */
static volatile uint32_t hit_page[GUESSERS];
static unsigned long hits;

static void *withdraw_guessed(void *last_hit)
{
	volatile uint32_t *hit = last_hit;
	uint32_t i;

	while (guessing) {
		for (i = 0; i < GUESSERS; i++) {
			uint32_t page = guess + i;

			if (context_withdraw(file, page) == 0) {
				__atomic_add_fetch(&hits, 1, __ATOMIC_RELAXED);
				*hit = page;
			}
		}
	}
	return NULL;
}

/* Leave a page to the guessers. */
static void await_hit(uint32_t page)
{
	unsigned int i, g;

	for (i = 0; i < YIELDS_MAX; i++) {
		for (g = 0; g < GUESSERS; g++)
			if (hit_page[g] == page)
				return;
		sched_yield();
	}
	CHECK(!"it was withdrawn by guess");
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
	for (i = 0; i < GUESSERS; i++) {
		hit_page[i] = UINT32_MAX;
		CHECK(pthread_create(&guessers[i], NULL, withdraw_guessed,
				     (void *)&hit_page[i]) == 0);
	}
	while (entered < times) {
		uint32_t page;

		if (!CHECK(context_enter(file, at, PAGE, 3, &page) == 0) ||
		    !CHECK(page < TABLE_PAGES_MAX))
			break;
		entered++;
		if (page < guess)
			guess = page; /* The search for entries has gone round. */
		if (entered % 8 == 0)
			await_hit(page);
		guess = page + 1;
		context_withdraw(file, page);
	}
	guessing = false;
	for (i = 0; i < GUESSERS; i++)
		pthread_join(guessers[i], NULL);
	close(file);
	CHECK(sysfs_number("pages") == 0);
	printf("%u entered, %lu withdrawn by guess, %u failed\n", entered, hits, failures);
	return failures != 0;
}
