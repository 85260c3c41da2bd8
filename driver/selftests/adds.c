// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Adds one to a word of its own memory through the card, again and again, many under way at
 * once, most by the page of descriptors and some by calls. Meanwhile another process lets its
 * ring and its queue run full and stores beyond its lines, and root resets the card now and
 * then. The word must be what the answers say: each add that ended well was done once, one that
 * was refused or that the host split never, and of one that has no answer or ended as lost
 * nobody knows. Run by root in a guest with a card.
 *
 *	adds [-r SECONDS] [COUNT]	until COUNT adds (10000) have ended well; -r: a reset each so often
 */
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "support.h"

#define ADD_WORDS (VELO_RMA_DESCRIPTOR_WORDS + VELO_RMA_OPERANDS_WORDS)
#define ADD_BYTES (8 * ADD_WORDS)
/* Under way at once; the queue has room for the notifications of each word of each. */
#define UNDER_WAY_MAX 32u
/* One in so many is posted by a call, for which the driver waits for several loads of the card. */
#define CALL_ONE_IN 8
/* A process that adds so often ends, and another one begins with other memory. */
#define LIFE_ADDS 5000u
/* Nothing has come for so long: it never will. */
#define REST_MS 60000
/* Between two bursts of the one that does not read. */
#define HOG_NAP_US 500000

static struct {
	uint64_t done, unknown, split, refused;
	uint64_t lives, wrong;
	volatile bool ends; /* the adder takes the answers that are due, and ends */
} *told;

struct adder {
	struct port port;
	volatile uint64_t *sum; /* and, a page behind, the old words */
	uint32_t page;
	bool is_under_way[256]; /* by cookie; 0 is none: parts of a descriptor that was split have it */
	unsigned int under_way;
	unsigned int lines; /* that may be in use: the host may split what is stored into words */
	uint8_t next;
	uint64_t done, unknown;
	bool is_over; /* the card was reset */
};

static void take_answers(struct adder *adder)
{
	struct port *port = &adder->port;
	volatile uint64_t *entry = port->queue + port->queue_head % port->take.queue_entries * 2;

	while (entry[0]) {
		uint64_t word = entry[0];
		uint8_t cookie = velo_rma_notification_cookie(word);

		entry[0] = 0;
		queue_read_to(port, ++port->queue_head);
		entry = port->queue + port->queue_head % port->take.queue_entries * 2;
		if (!adder->is_under_way[cookie])
			continue;
		adder->is_under_way[cookie] = false;
		adder->under_way--;
		switch (velo_rma_notification_error(word)) {
		case VELO_ERROR_NONE:
			adder->done++;
			break;
		case VELO_ERROR_OVERSIZE:
			told->split++;
			break;
		default:
			adder->unknown++;
		}
	}
}

static ssize_t post_by_page(struct adder *adder, const uint64_t *words)
{
	struct port *port = &adder->port;

	if (adder->lines + ADD_WORDS > port->take.store_lines) {
		if (!try_until_taken(port)) /* The card was reset. */
			return -1;
		adder->lines = 0;
	}
	store(port->descriptors, words, ADD_WORDS);
	adder->lines += ADD_WORDS;
	return ADD_BYTES;
}

static ssize_t post_by_call(struct adder *adder, const uint64_t *words)
{
	return pwrite(adder->port.file, words, ADD_BYTES,
		      (off_t)VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0));
}

static void post_one(struct adder *adder)
{
	struct port *port = &adder->port;
	const bool has_page = port->descriptors != MAP_FAILED && port->take.store_lines >= ADD_WORDS;
	uint64_t words[ADD_WORDS];
	ssize_t len_bytes;

	do {
		adder->next++;
	} while (!adder->next || adder->is_under_way[adder->next]);
	words[0] = velo_rma_descriptor_word0_pack(VELO_RMA_OP_FETCH_COMPARE_ADD,
						  VELO_RMA_PLACE_REQUESTER, 1,
						  (uint8_t)port->take.node,
						  (uint8_t)port->take.number, adder->next, 8);
	words[1] = velo_registered_address_pack(0, adder->page + 1);
	words[2] = velo_registered_address_pack(0, adder->page);
	words[3] = 0;
	words[4] = 1;
	if (has_page && adder->next % CALL_ONE_IN)
		len_bytes = post_by_page(adder, words);
	else
		len_bytes = post_by_call(adder, words);
	if (len_bytes == ADD_BYTES || errno == EIO) {
		adder->is_under_way[adder->next] = true;
		adder->under_way++;
	} else if (errno == EAGAIN) {
		told->refused++;
	} else {
		adder->is_over = true;
	}
}

/* Until there is an answer or the card was reset. */
static void wait_for_answers(struct adder *adder)
{
	struct port *port = &adder->port;
	struct pollfd poll_file = { port->file, POLLIN, 0 };
	int armed = context_arm(port->file, port->head, port->queue_head);

	if (armed < 0 || (armed && poll(&poll_file, 1, REST_MS) != 1) ||
	    poll_file.revents & (POLLHUP | POLLERR))
		adder->is_over = true;
}

static void add(void)
{
	struct adder adder = { .sum = pages(2) };
	uint64_t sum;

	if (!port_try(&adder.port, VELO_CARD_ANY, 4 * PORT_LINES, PORT_ITSELF))
		_exit(0); /* While a reset lasts there is none. */
	if (context_enter(adder.port.file, (void *)adder.sum, 2 * PAGE, 7, &adder.page))
		_exit(0);
	while (!adder.is_over) {
		bool goes_on = !told->ends && adder.done < LIFE_ADDS;

		if (!goes_on && !adder.under_way)
			break;
		if (goes_on && adder.under_way < UNDER_WAY_MAX)
			post_one(&adder);
		else
			wait_for_answers(&adder);
		take_answers(&adder);
	}
	/* Nothing is written any more once the context has ended. */
	port_close(&adder.port);
	adder.unknown += adder.under_way;
	sum = *adder.sum;
	if (sum < adder.done || sum > adder.done + adder.unknown) {
		printf("# FAILED: %lu adds ended well and of %lu nobody knows: the sum is %lu\n",
		       adder.done, adder.unknown, sum);
		told->wrong++;
	}
	told->done += adder.done;
	told->unknown += adder.unknown;
	told->lives++;
	_exit(0);
}

/*
 * Sends to itself, and notifies itself, without reading, and waits for no line. Now and then, so that
 * the card has time for the adds.
 */
static void hog(void)
{
	uint64_t line[8], words[VELO_RMA_DESCRIPTOR_WORDS] = { 0 };
	struct port port;

	for (;;) {
		unsigned int i;

		if (!port_try(&port, VELO_CARD_ANY, PORT_LINES, PORT_ITSELF)) {
			usleep(100000);
			continue;
		}
		words[0] = velo_rma_descriptor_word0_pack(VELO_RMA_OP_NOTIFY,
							  VELO_RMA_PLACE_COMPLETER, 0,
							  (uint8_t)port.take.node,
							  (uint8_t)port.take.number, 1, 0);
		make_line(line, 1, 8);
		while (context_arm(port.file, 0, 0) >= 0 || errno != ENODEV) {
			for (i = 0; i < 50; i++)
				send_line(&port, 7, line, 8);
			(void)!pwrite(port.file, words, sizeof(words),
				      (off_t)VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0));
			usleep(HOG_NAP_US);
		}
		port_close(&port);
	}
}

static pid_t start(void (*does)(void))
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		does();
	}
	return pid;
}

static void run(uint64_t count, unsigned int reset_s)
{
	pid_t hogging = start(hog), adding = start(add);
	time_t begun = time(NULL), told_at = begun, reset_at = begun;
	unsigned int resets = 0;

	while (told->done < count && !told->wrong) {
		time_t now = time(NULL);

		if (waitpid(adding, NULL, WNOHANG) == adding)
			adding = start(add);
		if (reset_s && now - reset_at >= (time_t)reset_s) {
			CHECK(sysfs_write("device/reset", "1") == 0);
			resets++;
			reset_at = now;
		}
		if (now - told_at >= 60) {
			printf("%ld s: %lu adds\n", now - begun, told->done);
			told_at = now;
		}
		usleep(20000);
	}
	told->ends = true;
	kill(hogging, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	printf("%lu adds ended well, by %lu processes, in %ld s and with %u resets; %lu were refused, %lu split, "
	       "of %lu nobody knows\n", told->done, told->lives, time(NULL) - begun, resets,
	       told->refused, told->split, told->unknown);
	CHECK(told->wrong == 0);
	CHECK(sysfs_number("contexts") == 0 && sysfs_number("pages") == 0);
}

int main(int argc, char **argv)
{
	unsigned int reset_s = 0;
	int option;

	while ((option = getopt(argc, argv, "r:")) != -1) {
		if (option != 'r')
			return 2;
		reset_s = (unsigned int)atoi(optarg);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	told = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		return 1;
	run(optind < argc ? strtoull(argv[optind], NULL, 0) : 10000, reset_s);
	return failures != 0;
}
