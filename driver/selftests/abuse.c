// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Two users do everything wrong on purpose, at random, while a third one exchanges messages and
 * remote memory with itself and checks all that comes. Run by root in a guest with a card.
 *
 *	abuse [-r] [-o] [-d DIVISOR] [-s SEED] SECONDS
 *
 * -r: root resets the card now and then. -d: the card's times, and the bound with them, are divided
 * by this (64): a simulated card takes seconds for what a real one does in milliseconds. -o: the two
 * also have more stores under way than they may, of which the card drops those beyond. (Times that
 * are divided by 64 are over before a simulated card is full; divided by 2 they are not.)
 *
 * The third user must lose nothing, nobody may read or write memory without a grant, and the third
 * user must never wait for longer than the bound of Documentation/userspace-api/velo.rst. A
 * simulated card shows its clock in its configuration space. Of any other card the time is that of
 * the machine.
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support.h"

/* 100 ms. */
#define BOUND_CYCLES (100000 * CARD_MHZ)
/* After so many bounds a message is lost, or when the card rests for so long and nothing came. */
#define LOST_BOUNDS 4
#define REST_MS 20000

#define ABUSERS 2
#define LIVES (2 * ABUSERS)
#define FILES 4
#define FIRST_USER 1000
#define BYSTANDER 1010

/* Numbers at the end of the card's, which no grant gives to the abusers. */
#define OURS 4

#define AREA_PAGES 24u
#define SECRET_PAGES 2u
#define LANDING_BYTES (2 * PAGE)
#define LINE_WORDS 8u
#define ADDED_WORDS (VELO_RMA_DESCRIPTOR_WORDS + VELO_RMA_OPERANDS_WORDS)
/* Lines for a context: a line that the host splits takes as many as it has words. */
#define LINES LINE_WORDS

/* Words that nobody but their owner may see begin with this. */
#define SECRET (0x5ec2e7ull << 40)
#define SECRET_MASK (0xffffffull << 40)

#define WRONGS(X)                                                                                  \
	X(takes, "contexts taken, by any number")                                                  \
	X(maps, "pages to store to mapped, without a grant")                                       \
	X(stores, "messages stored")                                                               \
	X(message_calls, "messages by pwrite()")                                                   \
	X(descriptor_calls, "descriptors by pwrite()")                                             \
	X(regions, "regions entered, withdrawn, unmapped")                                         \
	X(pointers, "read pointers to anywhere")                                                   \
	X(wilds, "calls with random structs")                                                      \
	X(children, "children with their parent's context")                                        \
	X(closes, "files closed")                                                                  \
	X(reads, "rings and queues read")                                                          \
	X(searches, "searches for secrets")                                                        \
	X(kills, "processes killed")                                                               \
	X(resets, "resets")

/* What all processes count together, and tell each other. */
static struct {
	volatile bool ends;
	volatile bool is_lost; /* the bystander waits no longer */
#define WRONG_COUNT(name, text) uint64_t name;
	WRONGS(WRONG_COUNT)
	uint64_t ours_taken;
	uint64_t rounds, messages, puts, gets, adds;
	uint64_t lost, bytes_read, bytes_written, stops, errors;
	uint32_t longest;
	char longest_what[32];
	/* Pages of others, for guesses that hit. */
	volatile uint32_t pages[16];
	volatile unsigned int page_count;
} *told;

static uint32_t divisor = 64;
static bool with_resets, with_overruns;
static uint32_t node, first_of_ours;

static void count(uint64_t *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* Counts what must not be, and tells the first few. */
static void __attribute__((format(printf, 3, 4))) wrong(uint64_t *counter, unsigned int by,
							 const char *format, ...)
{
	va_list words;

	if (__atomic_fetch_add(counter, by, __ATOMIC_RELAXED) >= 8ull * by)
		return;
	va_start(words, format);
	printf("# FAILED: ");
	vprintf(format, words);
	printf("\n");
	va_end(words);
}

static void tell_page(uint32_t page)
{
	told->pages[told->page_count++ % 16] = page;
}

/* --- time ------------------------------------------------------------------------------------- */

static uint32_t bound(void)
{
	return BOUND_CYCLES / divisor;
}

/* --- the bystander ---------------------------------------------------------------------------- */

/* One of the bystander's two contexts, each of which sends to the other. */
struct end {
	struct port port;
	uint32_t number;
	uint8_t *source; /* the other one may read it */
	uint8_t *landing; /* the other one may write it, and this one reads into it */
	uint8_t *expected; /* what it must hold */
	volatile uint64_t *sum; /* the other one adds to it */
	uint64_t *secret; /* nobody may write it */
	uint32_t source_page, landing_page, sum_page, secret_page;
	uint64_t line[LINE_WORDS]; /* the message that came last */
	unsigned int have, words; /* of it */
	bool has_line;
	uint64_t answer; /* the notification that was waited for; 0: none yet */
	uint8_t cookie; /* that it has */
};

static struct end ends[2];
static uint64_t sums[2];

static uint64_t secret_word(uint32_t who, unsigned int i)
{
	return SECRET | (uint64_t)who << 32 | i;
}

static void secret_fill(uint64_t *at, uint32_t who)
{
	unsigned int i;

	for (i = 0; i < SECRET_PAGES * PAGE / 8; i++)
		at[i] = secret_word(who, i);
}

static void secret_check(const volatile uint64_t *at, uint32_t who)
{
	unsigned int i;

	for (i = 0; i < SECRET_PAGES * PAGE / 8; i++)
		if (at[i] != secret_word(who, i))
			wrong(&told->bytes_written, 8, "word %u of %u's memory is %lx", i, who,
			      (unsigned long)at[i]);
}

/* Whether the card was reset since the context was taken. Then the process begins anew. */
static bool is_reset(int file)
{
	struct pollfd poll_file = { file, POLLIN, 0 };

	return poll(&poll_file, 1, 0) == 1 && poll_file.revents & (POLLHUP | POLLERR);
}

static void end_if_reset(int file)
{
	if (is_reset(file))
		_exit(0);
}

static uint32_t enter_for(int file, void *at, size_t len_bytes, uint32_t rights, uint32_t peer)
{
	struct velo_card_enter enter = {
		.size = sizeof(enter),
		.flags = VELO_CARD_ONE_PEER,
		.address = (uintptr_t)at,
		.len_bytes = len_bytes,
		.rights = rights,
		.peer = node << 8 | peer,
	};

	if (ioctl(file, VELO_CARD_ENTER, &enter)) {
		end_if_reset(file);
		wrong(&told->errors, 1, "memory cannot be entered: %s", strerror(errno));
	}
	tell_page(enter.first_page);
	return enter.first_page;
}

/* A number of ours, which nobody else can have. While a reset lasts there is none. */
static void take_ours(struct port *port, uint32_t number, uint32_t to)
{
	uint64_t deadline = now_ms() + REST_MS;

	while (!port_try(port, number, LINES, target_page(node, to))) {
		if (now_ms() > deadline) {
			wrong(&told->errors, 1, "number %u is not to be had: %s", number,
			      strerror(errno));
			_exit(1);
		}
		usleep(20000);
	}
	count(&told->ours_taken);
}

static void end_open(struct end *end, uint32_t number, uint32_t peer)
{
	take_ours(&end->port, number, peer);
	end->number = number;
	end->source = pages(1);
	end->landing = pages(LANDING_BYTES / PAGE);
	end->expected = calloc(1, LANDING_BYTES);
	end->sum = pages(1);
	end->secret = pages(SECRET_PAGES);
	secret_fill(end->secret, number);
}

/* Once both have their numbers: memory for nobody cannot be entered. */
static void end_enter(struct end *end, uint32_t peer)
{
	int file = end->port.file;

	end->source_page = enter_for(file, end->source, PAGE, VELO_CARD_READ, peer);
	end->landing_page = enter_for(file, end->landing, LANDING_BYTES, VELO_CARD_WRITE, peer);
	end->sum_page = enter_for(file, (void *)end->sum, PAGE, 7, peer);
	end->secret_page = enter_for(file, end->secret, SECRET_PAGES * PAGE, VELO_CARD_READ,
				     end->number);
}

static void take_slot(struct end *end, const uint64_t *slot, uint32_t peer)
{
	unsigned int first = 0, words = velo_header_len(slot[0]) / 8 + 1;

	if (velo_header_source(slot[0]) != (node << 8 | peer))
		wrong(&told->bytes_written, 64, "%x sent to %u without a grant",
		      velo_header_source(slot[0]), end->number);
	if (velo_header_reserved(slot[0]) == VELO_SLOT_FRAGMENT) {
		first = velo_fragment_tag_offset(velo_header_tag(slot[0]));
		words--;
		end->words = velo_fragment_tag_words(velo_header_tag(slot[0])) + 1u;
	} else {
		end->words = words;
	}
	if (words > LINE_WORDS || first + words > LINE_WORDS) {
		wrong(&told->errors, 1, "a slot of %u words behind %u", words, first);
		return;
	}
	memcpy(end->line + first, velo_header_reserved(slot[0]) == VELO_SLOT_FRAGMENT ? slot + 1 : slot,
	       words * 8);
	end->have += words;
	if (end->have < end->words)
		return;
	end->have = 0;
	if (end->has_line)
		wrong(&told->errors, 1, "a message that nobody sent came to %u", end->number);
	end->has_line = true;
}

/*
 * Of a descriptor that the host has split, the node refuses each part. What a later part has for a
 * target is an address of the descriptor.
 */
static bool is_of_a_part(uint64_t word)
{
	return velo_rma_notification_place(word) == VELO_RMA_PLACE_ERROR &&
	       velo_rma_notification_error(word) == VELO_ERROR_OVERSIZE;
}

/* Takes all that has come. */
static void look(struct end *end, uint32_t peer)
{
	struct port *port = &end->port;
	const volatile uint64_t *slot;
	volatile uint64_t *entry;
	uint64_t words[LINE_WORDS];
	unsigned int i;

	slot = port->ring + port->head % port->take.ring_slots * 8;
	while (velo_header_valid(slot[0]) && velo_header_seq(slot[0]) == port->head) {
		for (i = 0; i < LINE_WORDS; i++)
			words[i] = slot[i];
		ring_read_to(port, ++port->head);
		take_slot(end, words, peer);
		slot = port->ring + port->head % port->take.ring_slots * 8;
	}
	entry = port->queue + port->queue_head % port->take.queue_entries * 2;
	while (entry[0]) {
		uint64_t word = entry[0];

		entry[0] = 0;
		queue_read_to(port, ++port->queue_head);
		if (!is_of_a_part(word) && (velo_rma_notification_ctx(word) != peer ||
					    velo_rma_notification_node(word) != node))
			wrong(&told->bytes_written, 16,
			      "%u.%u notified %u without a grant: entry %u is %lx %lx%s",
			      velo_rma_notification_node(word), velo_rma_notification_ctx(word),
			      end->number, port->queue_head - 1, (unsigned long)word,
			      (unsigned long)entry[1],
			      is_reset(port->file) ? ", and the card was reset" : "");
		else if (velo_rma_notification_cookie(word) == end->cookie &&
			 velo_rma_notification_place(word) &
				 (VELO_RMA_PLACE_REQUESTER | VELO_RMA_PLACE_ERROR))
			end->answer = word;
		entry = port->queue + port->queue_head % port->take.queue_entries * 2;
	}
}

static void look_at_both(void)
{
	look(&ends[0], ends[1].number);
	look(&ends[1], ends[0].number);
}

/* What took how long. */
static void note_time(uint32_t since, const char *what)
{
	uint32_t took = cycle() - since;

	if (took > told->longest) {
		told->longest = took;
		snprintf(told->longest_what, sizeof(told->longest_what), "%s", what);
	}
	if (took > bound())
		wrong(&told->stops, 1, "%s took %u cycles, more than %u", what, took, bound());
}

/* A wait for what is to come to an end; without end, it is lost. */
struct wait {
	const char *what;
	uint32_t since, seen;
	uint64_t seen_ms;
};

static struct wait wait_begin(const char *what)
{
	uint32_t since = cycle();

	return (struct wait){ what, since, since, now_ms() };
}

/* Lets a little time pass. False: it is lost. */
static bool wait_on(struct wait *wait, struct end *end)
{
	struct port *port = &end->port;
	struct pollfd poll_file = { port->file, POLLIN, 0 };
	int armed = context_arm(port->file, port->head, port->queue_head);
	uint32_t now;

	if (armed < 0 || (armed && poll(&poll_file, 1, 10) < 0) ||
	    poll_file.revents & (POLLHUP | POLLERR)) {
		end_if_reset(port->file);
		wrong(&told->errors, 1, "%s: %s", wait->what, strerror(errno));
	}
	now = cycle();
	if (now != wait->seen)
		wait->seen_ms = now_ms();
	wait->seen = now;
	if (now - wait->since < LOST_BOUNDS * bound() && now_ms() - wait->seen_ms < REST_MS)
		return true;
	end_if_reset(port->file);
	wrong(&told->lost, 1, "%s is lost: nothing for %u cycles", wait->what, now - wait->since);
	note_time(wait->since, wait->what);
	return false;
}

/* A call that stores, until the card has the line. False: it is lost. */
static bool call_until_taken(struct end *end, const uint64_t *words, size_t len_bytes, off_t offset,
			     struct wait *wait)
{
	for (;;) {
		ssize_t done = pwrite(end->port.file, words, len_bytes, offset);

		if (done == (ssize_t)len_bytes)
			return true;
		end_if_reset(end->port.file);
		if (errno == EIO) {
			wrong(&told->lost, 1, "%s is dropped, perhaps", wait->what);
			return false;
		}
		if (errno != EAGAIN && errno != EINTR)
			wrong(&told->errors, 1, "%s: %s", wait->what, strerror(errno));
		look_at_both();
		if (!wait_on(wait, end))
			return false;
	}
}

static bool by_call(void)
{
	return below(2);
}

static void message(struct end *from, struct end *to)
{
	unsigned int words = 2 + (unsigned int)below(LINE_WORDS - 1), i;
	uint64_t line[LINE_WORDS] = { velo_header_pack(0, (uint8_t)words,
						       (uint16_t)(8 * (words - 1)), 0, 0) };
	uint64_t page = target_page(node, to->number) | (words - 1) << 6;
	struct wait wait = wait_begin("a message");

	for (i = 1; i < words; i++)
		line[i] = SECRET | random_number() >> 24;
	to->has_line = false;
	if (!by_call()) {
		send_line(&from->port, words - 1, line, words);
	} else if (!call_until_taken(from, line, words * 8,
				     (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS, page), &wait)) {
		return;
	}
	for (look_at_both(); !to->has_line; look_at_both())
		if (!wait_on(&wait, to))
			return;
	note_time(wait.since, wait.what);
	count(&told->messages);
	if (to->words != words || memcmp(to->line + 1, line + 1, (words - 1) * 8))
		wrong(&told->lost, 1, "a message is not what was sent");
	to->has_line = false;
}

/* Has an operation done. One that the host has split is refused, and is stored again. */
static bool operate(struct end *end, uint64_t *words, unsigned int count_words, const char *what)
{
	const off_t offset = (off_t)VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0);
	struct wait wait = wait_begin(what);
	unsigned int error;

	do {
		/* Of one that was split, answers of its parts may still come. */
		end->cookie++;
		end->answer = 0;
		words[0] = (words[0] & ~(0xffull << 24)) | (uint64_t)end->cookie << 24;
		if (!call_until_taken(end, words, count_words * 8, offset, &wait))
			return false;
		for (look_at_both(); !end->answer; look_at_both())
			if (!wait_on(&wait, end))
				return false;
		error = velo_rma_notification_error(end->answer);
	} while (error == VELO_ERROR_OVERSIZE);
	note_time(wait.since, what);
	if (error == VELO_ERROR_NONE)
		return true;
	end_if_reset(end->port.file);
	wrong(&told->lost, 1, "%s ended with error %u", what, error);
	return false;
}

static uint64_t command(unsigned int op, const struct end *peer, uint32_t len_bytes)
{
	return velo_rma_descriptor_word0_pack(op, VELO_RMA_PLACE_REQUESTER, 0, (uint8_t)node,
					      (uint8_t)peer->number, 0, len_bytes);
}

static uint64_t registered(uint32_t page, unsigned long at)
{
	return velo_registered_address_pack((uint32_t)(at % PAGE), page + (uint32_t)(at / PAGE));
}

/* All that is to be in a landing is, and nothing else. */
static void landing_check(struct end *end, const char *what)
{
	unsigned int i;

	for (i = 0; i < LANDING_BYTES; i++)
		if (((volatile uint8_t *)end->landing)[i] != end->expected[i]) {
			wrong(&told->bytes_written, 1, "after %s byte %u of %u's landing is %x, not %x",
			      what, i, end->number, end->landing[i], end->expected[i]);
			end->landing[i] = end->expected[i];
		}
}

static void source_fill(struct end *end)
{
	uint64_t *at = (uint64_t *)end->source;
	unsigned int i;

	for (i = 0; i < PAGE / 8; i++)
		at[i] = SECRET | random_number() >> 24;
}

static void put_or_get(unsigned int op, struct end *end, struct end *peer)
{
	const bool is_put = op == VELO_RMA_OP_PUT;
	struct end *from = is_put ? end : peer, *to = is_put ? peer : end;
	uint32_t len_bytes = 1 + (uint32_t)below(below(4) ? 64 : PAGE);
	unsigned long at = below(PAGE - len_bytes + 1), there = below(LANDING_BYTES - len_bytes + 1);
	uint64_t source = registered(from->source_page, at);
	uint64_t target = registered(to->landing_page, there);
	uint64_t words[VELO_RMA_DESCRIPTOR_WORDS] = {
		command(op, peer, len_bytes), is_put ? source : target, is_put ? target : source,
	};

	if (!operate(end, words, VELO_RMA_DESCRIPTOR_WORDS, is_put ? "a put" : "a get")) {
		memcpy(to->expected, to->landing, LANDING_BYTES);
		return;
	}
	count(is_put ? &told->puts : &told->gets);
	memcpy(to->expected + there, from->source + at, len_bytes);
	landing_check(to, is_put ? "a put" : "a get");
}

static void add_one(struct end *end, struct end *peer)
{
	unsigned int which = (unsigned int)(peer - ends);
	uint64_t words[ADDED_WORDS] = {
		velo_rma_descriptor_word0_pack(VELO_RMA_OP_FETCH_COMPARE_ADD,
					       VELO_RMA_PLACE_REQUESTER, 1, (uint8_t)node,
					       (uint8_t)peer->number, 0, 8),
		registered(end->sum_page, 8), registered(peer->sum_page, 0), 0, 1,
	};

	if (!operate(end, words, ADDED_WORDS, "an add"))
		return;
	count(&told->adds);
	sums[which]++;
	if (*peer->sum != sums[which])
		wrong(&told->errors, 1, "the sum is %lu, not %lu", (unsigned long)*peer->sum,
		      (unsigned long)sums[which]);
	sums[which] = *peer->sum;
}

/* Pages that the kernel gives away again are nobody's. */
static void fresh_pages_check(void)
{
	static volatile uint64_t *at;
	const unsigned int words = 16 * PAGE / 8;
	unsigned int i;

	for (i = 0; at && i < words; i++)
		if (at[i] != i)
			wrong(&told->bytes_written, 8, "word %u of a fresh page is %lx", i,
			      (unsigned long)at[i]);
	if (at)
		munmap((void *)at, 16 * PAGE);
	at = pages(16);
	for (i = 0; i < words; i++)
		at[i] = i;
}

/* It keeps to its share, so the card drops nothing of it. */
static void dropped_check(const struct end *end)
{
	const off_t offset = (off_t)VELO_CARD_OFFSET(VELO_CARD_SHARE, 0);
	uint64_t word = 0;

	if (pread(end->port.file, &word, 8, offset) == 8 && velo_pcie_share_dropped(word))
		wrong(&told->lost, 1, "the card dropped %u lines of %u",
		      velo_pcie_share_dropped(word), end->number);
}

static void bystander_round(void)
{
	unsigned int turn = (unsigned int)below(2);
	struct end *end = &ends[turn], *peer = &ends[!turn];

	message(end, peer);
	message(peer, end);
	source_fill(end);
	put_or_get(VELO_RMA_OP_PUT, end, peer);
	put_or_get(VELO_RMA_OP_GET, end, peer);
	add_one(end, peer);
	count(&told->rounds);
	if (told->rounds % 16)
		return;
	dropped_check(end);
	secret_check(end->secret, end->number);
	landing_check(peer, "a while");
	fresh_pages_check();
}

static void bystander(unsigned int which)
{
	const struct sched_param first = { .sched_priority = 1 };

	/* What the machine's processor does first says nothing about the card. */
	if (sched_setscheduler(0, SCHED_FIFO, &first) || setuid(BYSTANDER + which))
		_exit(1);
	end_open(&ends[0], first_of_ours, first_of_ours + 1);
	end_open(&ends[1], first_of_ours + 1, first_of_ours);
	end_enter(&ends[0], first_of_ours + 1);
	end_enter(&ends[1], first_of_ours);
	while (!told->ends && !told->lost) {
		bystander_round();
		usleep(1000);
	}
	told->is_lost = told->lost;
	_exit(0);
}

/* --- those who keep something --------------------------------------------------------------------- */

/* A user's process that has something secret, and never reads what it gets. */
static void keeper(unsigned int which)
{
	uint32_t number = first_of_ours + 2 + which;
	struct port port;
	uint64_t *secret;

	if (setuid(FIRST_USER + which))
		_exit(1);
	take_ours(&port, number, first_of_ours - 1);
	secret = pages(SECRET_PAGES);
	secret_fill(secret, number);
	enter_for(port.file, secret, SECRET_PAGES * PAGE, VELO_CARD_READ, number);
	while (!told->ends) {
		end_if_reset(port.file);
		secret_check(secret, number);
		usleep(200000);
	}
	_exit(0);
}

/* --- those who do wrong ----------------------------------------------------------------------- */

static struct port ports[FILES];
static bool is_open[FILES], is_read[FILES];
static char *area;
static uint32_t regions[8];

static uint32_t any_node(void)
{
	switch (below(8)) {
	case 0: /* Nobody behind the link, or another card. */
	case 1:
		return node ^ 1;
	case 2: /* No way. */
		return 9 + (uint32_t)below(200);
	default:
		return node;
	}
}

/* Of an abuser, of ours, or of nobody. */
static uint32_t any_context(void)
{
	switch (below(4)) {
	case 0:
		return first_of_ours + (uint32_t)below(OURS);
	case 1:
		return (uint32_t)below(256);
	default:
		return ports[below(FILES)].take.number;
	}
}

static bool is_ours(uint32_t to_node, uint32_t context)
{
	return to_node == node && context >= first_of_ours;
}

static uint32_t any_page(void)
{
	switch (below(4)) {
	case 0:
		return (uint32_t)below(1 << 24);
	case 1:
		return told->pages[below(16)] + (uint32_t)below(4) - 1;
	default:
		return regions[below(8)] + (uint32_t)below(4);
	}
}

static uint64_t any_address(void)
{
	return velo_registered_address_pack((uint32_t)(below(PAGE) & ~(below(2) * 7)),
					    any_page() & 0xffffff);
}

static void take_another(unsigned int f)
{
	uint32_t number = below(4) ? VELO_CARD_ANY : (uint32_t)below(256);

	if (is_open[f])
		return;
	count(&told->takes);
	if (below(8) == 0)
		number = first_of_ours + (uint32_t)below(OURS);
	is_open[f] = port_try(&ports[f], number, LINES, PORT_ITSELF);
	is_read[f] = below(2);
	/* A keeper's number is its user's, so after a reset another process of his may have it. */
	if (is_open[f] && ports[f].take.number >= first_of_ours &&
	    ports[f].take.number < first_of_ours + 2)
		wrong(&told->errors, 1, "number %u is had by another user",
		      ports[f].take.number);
	if (is_open[f] && ports[f].take.number >= first_of_ours) {
		port_close(&ports[f]);
		is_open[f] = false;
	}
}

static void close_one(unsigned int f)
{
	count(&told->closes);
	if (below(4)) {
		port_close(&ports[f]);
	} else {
		/* The mappings stay, so the driver keeps the context. */
		close(ports[f].file);
	}
	is_open[f] = false;
}

static void map_target(unsigned int f)
{
	uint32_t to_node = any_node(), context = any_context();
	uint64_t *at = context_map(ports[f].file, VELO_CARD_TARGETS, target_page(to_node, context),
				   PAGE, PROT_WRITE);

	if (!maps_pages())
		return;
	count(&told->maps);
	/* By such a page all contexts can be reached. */
	if (context_map(ports[f].file, VELO_CARD_DESCRIPTORS, 0, PAGE, PROT_WRITE) != MAP_FAILED)
		wrong(&told->errors, 1, "a page to store descriptors to was mapped");
	if (at == MAP_FAILED)
		return;
	if (is_ours(to_node, context))
		wrong(&told->errors, 1, "a page to store to %u was mapped", context);
	munmap((void *)ports[f].target, PAGE);
	ports[f].target = at;
	ports[f].target_page = target_page(to_node, context);
}

/* No more lines under way than there are, though each may take as many as it has words. */
static void wait_for_lines(unsigned int f)
{
	if (!with_overruns)
		(void)try_until_taken(&ports[f]);
}

static unsigned int any_line(uint64_t *line)
{
	unsigned int words = 1 + (unsigned int)below(LINE_WORDS), i;

	line[0] = velo_header_pack(0, (uint8_t)below(256), (uint16_t)(8 * (words - 1)), 0, 0);
	if (below(16) == 0)
		line[0] = random_number();
	for (i = 1; i < LINE_WORDS; i++)
		line[i] = below(1ull << 32);
	return words;
}

static bool has_lines(unsigned int f)
{
	return with_overruns || ports[f].take.store_lines >= LINES;
}

static void store_messages(unsigned int f)
{
	unsigned int i, many = 1 + (unsigned int)below(64), words;
	uint64_t line[LINE_WORDS];

	for (i = 0; i < many && has_lines(f); i++) {
		words = any_line(line);
		count(&told->stores);
		send_line(&ports[f], words - 1, line, words);
		if (with_overruns && below(2))
			continue;
		wait_for_lines(f);
	}
}

static void call_message(unsigned int f)
{
	uint32_t to_node = any_node(), context = any_context();
	uint64_t line[LINE_WORDS];
	unsigned int words = any_line(line);
	uint64_t page = target_page(to_node, context) | (words - 1) << 6;

	count(&told->message_calls);
	if (pwrite(ports[f].file, line, words * 8, (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS, page)) >
		    0 &&
	    is_ours(to_node, context))
		wrong(&told->errors, 1, "a message was sent to %u", context);
}

static unsigned int any_descriptor(uint64_t *words)
{
	unsigned int op = 1 + (unsigned int)below(5);

	words[0] = velo_rma_descriptor_word0_pack(op, (uint8_t)below(8), (uint8_t)below(2),
						  (uint8_t)any_node(), (uint8_t)any_context(),
						  (uint8_t)below(256),
						  (uint32_t)below(1ull << below(17)));
	if (below(32) == 0)
		words[0] = below(1ull << 40);
	words[1] = any_address();
	words[2] = any_address();
	words[3] = below(16);
	words[4] = below(1 << 16);
	return op == VELO_RMA_OP_FETCH_COMPARE_ADD ? ADDED_WORDS : VELO_RMA_DESCRIPTOR_WORDS;
}

static void call_descriptors(unsigned int f)
{
	unsigned int i, many = 1 + (unsigned int)below(16), count_words;
	uint64_t words[ADDED_WORDS];

	for (i = 0; i < many; i++) {
		count_words = any_descriptor(words);
		count(&told->descriptor_calls);
		if (pwrite(ports[f].file, words, count_words * 8,
			   (off_t)VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0)) > 0 &&
		    is_ours(velo_rma_descriptor_dst_node(words[0]),
			    velo_rma_descriptor_dst_ctx(words[0])))
			wrong(&told->errors, 1, "a descriptor for %u was taken",
			      velo_rma_descriptor_dst_ctx(words[0]));
	}
}

static void change_memory(unsigned int f)
{
	uint64_t first = below(AREA_PAGES), many = 1 + below(AREA_PAGES - first);
	/* The process unmaps whole pages of the system. */
	uint64_t start = first * PAGE / system_page() * system_page();
	struct velo_card_enter enter = {
		.size = sizeof(enter),
		.flags = (uint32_t)below(2),
		.address = (uintptr_t)area + first * PAGE,
		.len_bytes = many * PAGE,
		.rights = 1 + (uint32_t)below(7),
	};

	count(&told->regions);
	switch (below(8)) {
	case 0:
		context_withdraw(ports[f].file, any_page());
		break;
	case 1:
		munmap(area + start, many * PAGE);
		mmap(area + start, many * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 2:
		madvise(area + start, many * PAGE, MADV_DONTNEED);
		break;
	default:
		if (enter.flags)
			enter.peer = any_node() << 8 | any_context();
		if (ioctl(ports[f].file, VELO_CARD_ENTER, &enter))
			break;
		regions[below(8)] = enter.first_page;
		if (below(4) == 0)
			tell_page(enter.first_page);
	}
}

static void move_pointer(unsigned int f)
{
	uint64_t to = below(4) ? below(1 << 16) : random_number();

	count(&told->pointers);
	if (below(2))
		ring_read_to(&ports[f], to);
	else
		queue_read_to(&ports[f], to);
}

static void call_wildly(unsigned int f)
{
	uint32_t words[16] = { 0 };
	uint64_t offset = VELO_CARD_OFFSET(below(8), below(2) ? random_number() : below(1 << 16));
	unsigned int i;

	count(&told->wilds);
	for (i = 0; i < 16; i++)
		words[i] = (uint32_t)(below(2) ? below(64) : random_number());
	switch (below(4)) {
	case 0:
		(void)!pread(ports[f].file, words, below(64), (off_t)offset);
		break;
	case 1: /* Without what would be a message to somebody. */
		(void)!pwrite(ports[f].file, words, below(8), (off_t)offset);
		break;
	default:
		/* But for a context by its number, which take_another() asks for. */
		ioctl(ports[f].file, _IO(VELO_CARD_IOC, 1 + below(31)), words);
	}
}

/* It has the file, and nothing of its parent's context. */
static void child_tries(unsigned int f)
{
	const off_t offset = (off_t)VELO_CARD_OFFSET(VELO_CARD_STORES, 0);
	uint64_t word;

	if (context_arm(ports[f].file, 0, 0) != -1 || pread(ports[f].file, &word, 8, offset) > 0)
		wrong(&told->errors, 1, "a child uses its parent's context");
	if (maps_pages() && !store_signal(ports[f].target))
		wrong(&told->errors, 1, "a child stores by its parent's pages");
	if (below(2))
		usleep((useconds_t)below(200000));
	_exit(0);
}

static void have_child(unsigned int f)
{
	pid_t pid;

	count(&told->children);
	pid = fork();
	if (pid == 0)
		child_tries(f);
	if (below(4) == 0)
		_exit(0); /* The child has the files. */
	if (below(2))
		waitpid(pid, NULL, 0);
}

static void search(const volatile uint64_t *at, unsigned int words, const char *where)
{
	unsigned int i;

	for (i = 0; i < words; i++)
		if ((at[i] & SECRET_MASK) == SECRET)
			wrong(&told->bytes_read, 8, "%lx is in an abuser's %s",
			      (unsigned long)at[i], where);
}

static void read_what_came(unsigned int f)
{
	struct port *port = &ports[f];
	volatile uint64_t *entry = port->queue + port->queue_head % port->take.queue_entries * 2;

	count(&told->reads);
	if (!is_read[f])
		return;
	while (entry[0]) {
		entry[0] = 0;
		port->queue_head++;
		entry = port->queue + port->queue_head % port->take.queue_entries * 2;
	}
	queue_read_to(port, port->queue_head);
	while (velo_header_valid(port->ring[port->head % port->take.ring_slots * 8]) &&
	       velo_header_seq(port->ring[port->head % port->take.ring_slots * 8]) == port->head) {
		search(port->ring + port->head % port->take.ring_slots * 8 + 1, 7, "ring");
		port->head++;
	}
	ring_read_to(port, port->head);
}

static void do_wrong(unsigned int f)
{
	unsigned int what = (unsigned int)below(100);

	if (!is_open[f])
		take_another(f);
	else if (what < 25)
		store_messages(f);
	else if (what < 40)
		call_message(f);
	else if (what < 65)
		call_descriptors(f);
	else if (what < 75)
		change_memory(f);
	else if (what < 80)
		map_target(f);
	else if (what < 82)
		move_pointer(f);
	else if (what < 88)
		call_wildly(f);
	else if (what < 89)
		have_child(f);
	else if (what < 92)
		close_one(f);
	else if (what < 99)
		read_what_came(f);
	else {
		count(&told->searches);
		search((uint64_t *)area, AREA_PAGES * PAGE / 8, "memory");
	}
}

static void abuser(unsigned int which)
{
	unsigned int f;

	if (setuid(FIRST_USER + which % ABUSERS))
		_exit(1);
	area = pages(AREA_PAGES);
	for (;;) {
		f = (unsigned int)below(FILES);
		if (is_open[f] && is_reset(ports[f].file)) {
			port_close(&ports[f]);
			is_open[f] = false;
		}
		do_wrong(f);
	}
}

/* --- all of them ------------------------------------------------------------------------------ */

static struct role {
	void (*run)(unsigned int which);
	unsigned int which;
	bool is_killed; /* now and then, with its children */
	pid_t pid;
	uint64_t end_ms;
} roles[] = {
	{ bystander, 0 },
	{ keeper, 0 },
	{ keeper, 1 },
	{ abuser, 0, true },
	{ abuser, 1, true },
	{ abuser, 2, true },
	{ abuser, 3, true },
};

#define ROLES (sizeof(roles) / sizeof(*roles))

static void role_start(struct role *role)
{
	uint64_t seed = random_number() | 1;

	fflush(stdout);
	role->end_ms = now_ms() + 50 + below(6000);
	role->pid = fork();
	if (role->pid)
		return;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	random_state = seed;
	role->run(role->which);
}

static void role_kill(struct role *role)
{
	setpgid(role->pid, role->pid);
	kill(-role->pid, SIGKILL);
}

/* Those that have ended begin anew, and some are made to end. */
static void tend(bool with_kills)
{
	unsigned int i;
	int status;
	pid_t pid;

	for (i = 0; with_kills && i < ROLES; i++)
		if (roles[i].is_killed && now_ms() > roles[i].end_ms) {
			count(&told->kills);
			role_kill(&roles[i]);
			roles[i].end_ms = UINT64_MAX;
		}
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < ROLES; i++) {
			if (roles[i].pid != pid)
				continue;
			if (!roles[i].is_killed && status)
				wrong(&told->errors, 1, "one who does nothing wrong ended: %x", status);
			if (with_kills && !told->is_lost)
				role_start(&roles[i]);
			else
				roles[i].pid = 0;
		}
}

static void reset(void)
{
	int file = open(SYSFS "device/reset", O_WRONLY | O_CLOEXEC);

	count(&told->resets);
	if (file < 0 || write(file, "1", 1) != 1)
		wrong(&told->errors, 1, "a reset failed: %s", strerror(errno));
	close(file);
}

static void tell_progress(uint64_t begun_ms)
{
	printf("%lu s, %u cycles: %lu rounds, the longest wait was %u cycles (%s), %lu lost\n",
	       (unsigned long)(now_ms() - begun_ms) / 1000, cycle(), (unsigned long)told->rounds,
	       told->longest, told->longest_what, (unsigned long)told->lost);
}

static void go_on_until(uint64_t end_ms, bool with_kills, uint64_t begun_ms)
{
	uint64_t told_ms = now_ms(), reset_ms = now_ms() + 2000 + below(6000);

	while (now_ms() < end_ms && !told->is_lost) {
		tend(with_kills);
		usleep(20000);
		if (with_resets && with_kills && now_ms() > reset_ms) {
			reset();
			reset_ms = now_ms() + 2000 + below(6000);
		}
		if (now_ms() - told_ms < 5000)
			continue;
		told_ms = now_ms();
		tell_progress(begun_ms);
	}
}

static const char *const times[] = { "ring_patience", "access_patience", "answer_patience" };

/* Divides the card's times, or puts them back. */
static void set_times(long *before, bool is_begin)
{
	char text[32];
	unsigned int i;

	for (i = 0; i < sizeof(times) / sizeof(*times); i++) {
		if (is_begin)
			before[i] = sysfs_number(times[i]);
		if (before[i] <= 0)
			continue;
		snprintf(text, sizeof(text), "%ld", is_begin ? before[i] / divisor : before[i]);
		if (sysfs_write(times[i], text))
			wrong(&told->errors, 1, "%s cannot be set", times[i]);
	}
}

/* Abusers may send to all but ours; ours to each other. */
static void set_grants(void)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "none\n%u %u 0-%u\n%u 0-255 0-%u\n%u %u 0-%u\n%u 0-255 0-%u\n%u %u %u-%u\n",
		 FIRST_USER, node, first_of_ours - 1, FIRST_USER, first_of_ours - 1, FIRST_USER + 1,
		 node, first_of_ours - 1, FIRST_USER + 1, first_of_ours - 1, BYSTANDER, node,
		 first_of_ours, first_of_ours + 1);
	if (sysfs_write("grants", text))
		wrong(&told->errors, 1, "the grants cannot be set");
}

static bool tell_all(uint64_t begun_ms, uint32_t cycles)
{
#define WRONG_TELL(name, text) printf("  %10lu %s\n", (unsigned long)told->name, text);
	WRONGS(WRONG_TELL)
	printf("in %lu s and %u cycles. The bystander:\n",
	       (unsigned long)(now_ms() - begun_ms) / 1000, cycles);
	printf("  %10lu messages, %lu puts, %lu gets, %lu adds arrived\n",
	       (unsigned long)told->messages, (unsigned long)told->puts,
	       (unsigned long)told->gets, (unsigned long)told->adds);
	printf("  %10lu lost\n", (unsigned long)told->lost);
	printf("  %10lu bytes read without a grant\n", (unsigned long)told->bytes_read);
	printf("  %10lu bytes written without a grant\n", (unsigned long)told->bytes_written);
	printf("  %10lu stops longer than %u cycles; the longest wait was %u, for %s\n",
	       (unsigned long)told->stops, bound(), told->longest, told->longest_what);
	printf("  %10lu other errors\n", (unsigned long)told->errors);
	return !told->lost && !told->bytes_read && !told->bytes_written && !told->stops &&
	       !told->errors && told->rounds;
}

/* What the card has counted tells what the abuse has reached, and what has stopped. */
static void tell_state(void)
{
	static const char *const names[] = {
		"sent", "refused", "received", "dropped", "undelivered", "given_up", "unanswered",
		"rma_posted", "rma_completed", "rma_served", "rma_refused", "rma_errors",
		"link0_dead", "link0_undelivered", "pcie_stores_accepted", "pcie_stores_taken",
		"pcie_stores_dropped", "stall_ring", "stall_network", "stall_host", "stall_queue",
		"stall_descriptors",
	};
	char path[64];
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "counters/%s", names[i]);
		printf("%s%s %ld", i ? ", " : "# the card's counters: ", names[i],
		       sysfs_number(path));
	}
	printf("\n");
}

static int run(uint64_t seconds)
{
	const long lines = sysfs_number("lines_free");
	uint64_t begun_ms = now_ms();
	uint32_t begun = cycle();
	unsigned int i;
	long before[sizeof(times) / sizeof(*times)];

	set_times(before, true);
	/* A card with links keeps the numbers of programs that have ended, and some may be ours. */
	if (sysfs_write("release", "all"))
		wrong(&told->errors, 1, "numbers cannot be given up");
	set_grants();
	/* A number belongs to whoever takes it first, so those who do wrong come when ours are taken. */
	for (i = 0; i < ROLES; i++)
		if (!roles[i].is_killed)
			role_start(&roles[i]);
	for (i = 0; i < REST_MS && told->ours_taken < OURS; i++)
		usleep(1000);
	for (i = 0; i < ROLES; i++)
		if (roles[i].is_killed)
			role_start(&roles[i]);
	go_on_until(begun_ms + seconds * 1000, true, begun_ms);
	tell_state();
	/* Without those who did wrong all goes on for a while. */
	for (i = 0; i < ROLES; i++)
		if (roles[i].is_killed)
			role_kill(&roles[i]);
	go_on_until(now_ms() + 2000, false, begun_ms);
	told->ends = true;
	while (waitpid(-1, NULL, 0) > 0)
		;
	if (sysfs_number("contexts") || sysfs_number("pages") || sysfs_number("broken") ||
	    sysfs_number("lines_free") != lines)
		wrong(&told->errors, 1, "%ld contexts, %ld pages and %ld of %ld lines are left",
		      sysfs_number("contexts"), sysfs_number("pages"), sysfs_number("lines_free"),
		      lines);
	set_times(before, false);
	if (sysfs_write("grants", "none all") || sysfs_write("release", "all"))
		wrong(&told->errors, 1, "the grants cannot be put back");
	return !tell_all(begun_ms, cycle() - begun);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	int option, failed;

	while ((option = getopt(argc, argv, "rod:s:")) != -1) {
		if (option == 'r')
			with_resets = true;
		else if (option == 'o')
			with_overruns = true;
		else if (option == 'd')
			divisor = (uint32_t)strtoul(optarg, NULL, 0);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	if (optind + 1 != argc || divisor == 0) {
		fprintf(stderr, "usage: abuse [-r] [-o] [-d DIVISOR] [-s SEED] SECONDS\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	random_state = seed * 0x9e3779b97f4a7c15ull | 1;
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	node = (uint32_t)sysfs_number("node");
	first_of_ours = (uint32_t)sysfs_number("contexts_max") - OURS;
	if (told == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1) || chmod(DEVICE, 0666))
		return 1;
	clock_open();
	printf("times are divided by %u, seed %lu, %s clock\n", divisor, (unsigned long)seed,
	       clock_is_the_card ? "the card's" : "the machine's");
	failed = run(strtoull(argv[optind], NULL, 0));
	return chmod(DEVICE, 0600) || failed;
}
