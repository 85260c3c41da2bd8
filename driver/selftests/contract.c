// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The contract of Documentation/userspace-api/velo.rst: one test for each of its lines that holds
 * today, by two users and root. Run by root in a guest with a card; what it says is TAP.
 *
 *	contract [NAME]		all, or one of them
 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support.h"

/* Users; the first one has a number, the second one wants it, the third one sends to it. */
enum { OWNER = 1000, HEIR = 1001, PEER = 1002 };

#define NUMBER 5
#define LINE_WORDS 8u

/* What the owner shows of its memory. */
#define SHOWN 0x5404ull

/* What processes tell each other. */
static struct {
	uint32_t context;
	uint32_t page;
	volatile bool go;
	volatile bool is_full;
	volatile bool is_refused;
} *told;

/* As the card had it. */
static char patience[32];

/* Moves a word between own memory and what a context shows, or notifies both. Returns its length. */
static size_t descriptor_make(uint64_t *words, unsigned int op, uint32_t node, uint32_t context,
			      uint32_t own_page)
{
	const bool is_add = op == VELO_RMA_OP_FETCH_COMPARE_ADD;

	words[0] = velo_rma_descriptor_word0_pack(op, VELO_RMA_PLACE_REQUESTER, 0, (uint8_t)node,
						  (uint8_t)context, 17,
						  op == VELO_RMA_OP_NOTIFY ? 0 : 8);
	words[1] = velo_registered_address_pack(0, own_page);
	words[2] = velo_registered_address_pack(0, told->page);
	words[3] = words[4] = 0;
	return 8 * (VELO_RMA_DESCRIPTOR_WORDS + (is_add ? VELO_RMA_OPERANDS_WORDS : 0));
}

/* Stores such a descriptor by the kernel. */
static ssize_t descriptor_write(int file, unsigned int op, uint32_t node, uint32_t context,
				uint32_t own_page)
{
	uint64_t words[VELO_RMA_DESCRIPTOR_WORDS + VELO_RMA_OPERANDS_WORDS];
	size_t len_bytes = descriptor_make(words, op, node, context, own_page);

	return pwrite(file, words, len_bytes, (off_t)VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0));
}

/* --- numbers ---------------------------------------------------------------------------------- */

static void takes_the_number(void)
{
	struct velo_card_take take;

	CHECK(context_take(open(DEVICE, O_RDWR), NUMBER, &take) == 0 && take.number == NUMBER);
}

static void is_refused_the_number(void)
{
	struct velo_card_take take;
	int file = open(DEVICE, O_RDWR);
	unsigned int i;

	CHECK_FAILS(context_take(file, NUMBER, &take), EBUSY);
	for (i = 0; i < 40; i++) {
		file = open(DEVICE, O_RDWR);
		CHECK(context_take(file, VELO_CARD_ANY, &take) == 0 && take.number != NUMBER);
		close(file);
	}
}

static void enters_memory_for_the_number(void)
{
	struct velo_card_take take;
	struct velo_card_enter enter = {
		.size = sizeof(enter),
		.flags = VELO_CARD_ONE_PEER,
		.address = (uintptr_t)pages(1),
		.len_bytes = PAGE,
		.rights = 7,
	};
	int file = context_open(&take);

	enter.peer = take.node << 8 | NUMBER;
	CHECK(ioctl(file, VELO_CARD_ENTER, &enter) == 0);
	told->page = enter.first_page;
	told->context = take.number;
	/* Nobody else is meant by a number that nobody has. */
	enter.peer = take.node << 8 | (NUMBER + 100);
	CHECK_FAILS(ioctl(file, VELO_CARD_ENTER, &enter), ENXIO);
	/* Of other nodes this card does not know. */
	enter.peer = (take.node ^ 1) << 8 | NUMBER;
	CHECK(ioctl(file, VELO_CARD_ENTER, &enter) == 0);
}

static void stores_to_the_number(void)
{
	struct velo_card_take take;
	int file = context_open(&take);
	uint64_t *page = context_map(file, VELO_CARD_TARGETS, target_page(take.node, NUMBER), PAGE,
				     PROT_WRITE);

	CHECK(page != MAP_FAILED && store_signal(page) == 0);
}

static void stores_to_the_number_by_the_kernel(void)
{
	struct velo_card_take take;
	uint64_t line = 0;
	int file = context_open(&take);
	const off_t at = (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS, target_page(take.node, NUMBER));

	CHECK(pwrite(file, &line, sizeof(line), at) == sizeof(line));
}

static void notifies_the_number(void)
{
	struct velo_card_take take;
	int file = context_open(&take);

	CHECK(descriptor_write(file, VELO_RMA_OP_NOTIFY, take.node, NUMBER, 0) > 0);
}

/* The owner leaves while another process means him. */
static void kept_while(void (*meant)(void))
{
	struct user owner = user_start(OWNER, takes_the_number);
	struct user peer = user_start(PEER, meant);

	user_end(owner);
	CHECK(sysfs_number("contexts_kept") == 1);
	user_end(user_start(HEIR, is_refused_the_number));
	user_end(user_start(OWNER, takes_the_number));
	user_end(user_start(HEIR, is_refused_the_number));
	user_end(peer);
	CHECK(sysfs_number("contexts_kept") == 0);
	user_end(user_start(HEIR, takes_the_number));
	CHECK(sysfs_number("contexts_kept") == 0);
}

static void number_is_kept_while_memory_is_entered_for_it(void)
{
	kept_while(enters_memory_for_the_number);
}

static void number_is_kept_while_somebody_stores_to_it(void)
{
	if (maps_pages())
		kept_while(stores_to_the_number);
	kept_while(stores_to_the_number_by_the_kernel);
	kept_while(notifies_the_number);
}

static void number_is_kept_while_a_grant_names_it(void)
{
	char text[64];

	snprintf(text, sizeof(text), "none\n%u %ld %u-%u", PEER, sysfs_number("node"), NUMBER - 1,
		 NUMBER + 1);
	CHECK(sysfs_write("grants", text) == 0);
	user_end(user_start(OWNER, takes_the_number));
	CHECK(sysfs_number("contexts_kept") == 1);
	user_end(user_start(HEIR, is_refused_the_number));
	/* All contexts: that is none in particular. */
	CHECK(sysfs_write("grants", "none\n1002 0-255 0-255\n") == 0);
	user_end(user_start(HEIR, takes_the_number));
	CHECK(sysfs_write("grants", "none all") == 0);
	CHECK(sysfs_number("contexts_kept") == 0);
}

static void number_is_kept_while_the_card_has_links(void)
{
	CHECK(sysfs_write("links", "1") == 0);
	user_end(user_start(OWNER, takes_the_number));
	CHECK(sysfs_number("contexts_kept") == 1);
	user_end(user_start(HEIR, is_refused_the_number));
	user_end(user_start(OWNER, takes_the_number));
	CHECK(sysfs_write("links", "0") == 0);
	user_end(user_start(HEIR, takes_the_number));
}

static void reaches_the_memory(void)
{
	struct port port;
	uint32_t page;

	port_open_at(&port, NUMBER, VELO_CARD_ANY);
	CHECK(context_enter(port.file, pages(1), PAGE, 7, &page) == 0);
	CHECK(put_to(&port, told->context, page, told->page, 64) == VELO_ERROR_NONE);
}

static void does_not_reach_the_memory(void)
{
	struct port port;
	uint32_t page;

	port_open_at(&port, NUMBER, VELO_CARD_ANY);
	CHECK(context_enter(port.file, pages(1), PAGE, 7, &page) == 0);
	CHECK(put_to(&port, told->context, page, told->page, 64) == VELO_ERROR_UNREGISTERED);
}

static void root_gives_up_numbers(void)
{
	struct user owner = user_start(OWNER, takes_the_number);
	struct user peer = user_start(PEER, enters_memory_for_the_number);

	user_end(owner);
	/* What was entered for a user is his, in whichever process. */
	user_end(user_start(OWNER, reaches_the_memory));
	CHECK(sysfs_write("release", "1001") == 0 && sysfs_number("contexts_kept") == 1);
	CHECK(sysfs_write("release", "nobody") == EINVAL);
	CHECK(sysfs_write("release", "1000") == 0 && sysfs_number("contexts_kept") == 0);
	user_end(user_start(HEIR, does_not_reach_the_memory));
	/* A number that somebody has is not given up. */
	owner = user_start(OWNER, takes_the_number);
	CHECK(sysfs_write("release", "all") == 0);
	user_end(user_start(HEIR, is_refused_the_number));
	user_end(owner);
	user_end(peer);
	CHECK(sysfs_number("contexts_kept") == 0);
}

/* --- a user beside root ----------------------------------------------------------------------- */

/* A user's test, beside which the calling one goes on; user_start() would wait for its end. */
static pid_t beside_start(unsigned int number, void (*test)(void))
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		failures = 0;
		if (setuid(number))
			_exit(1);
		test();
		fflush(stdout);
		_exit(failures != 0);
	}
	return pid;
}

/* Wait until the user says so by a flag, or has ended. */
static void beside_await(pid_t pid, const volatile bool *flag)
{
	while (!*flag && waitpid(pid, NULL, WNOHANG) == 0)
		usleep(1000);
}

static void beside_end(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* --- full rings and queues -------------------------------------------------------------------- */

/* What a process does that reads nothing: it fills what it has, says so, and goes on. */
static void never_reads_its_ring(void)
{
	struct port port;
	uint64_t line[2];
	unsigned int i;

	port_open(&port, VELO_CARD_ANY);
	make_line(line, 1, 2);
	for (i = 0; told->go; i++) {
		send_line(&port, 1, line, 2);
		wait_until_taken(&port);
		told->is_full = i > port.take.ring_slots;
	}
}

static void never_reads_its_queue(void)
{
	const off_t descriptors = (off_t)VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0);
	uint64_t notify_itself[VELO_RMA_DESCRIPTOR_WORDS] = { 0 };
	struct port port;
	unsigned int i;

	port_open(&port, VELO_CARD_ANY);
	notify_itself[0] = velo_rma_descriptor_word0_pack(VELO_RMA_OP_NOTIFY,
							  VELO_RMA_PLACE_REQUESTER, 0,
							  (uint8_t)port.take.node,
							  (uint8_t)port.take.number, 17, 0);
	for (i = 0; told->go; i++) {
		(void)!pwrite(port.file, notify_itself, sizeof(notify_itself), descriptors);
		told->is_full = i > port.take.queue_entries;
	}
}

/*
 * A simulated card takes seconds for the cycles that the default is. How long a bystander waits is
 * a number of such times, so it is the same test with a shorter one.
 */
#define PATIENCE_HERE "500"

static pid_t hog_start(void (*never_reads)(void), const char *cycles)
{
	pid_t pid;

	CHECK(sysfs_number("ring_patience") > 0);
	CHECK(sysfs_write("ring_patience", cycles) == 0);

	told->go = true;
	told->is_full = false;
	pid = beside_start(OWNER, never_reads);
	beside_await(pid, &told->is_full);
	return pid;
}

static void hog_end(pid_t pid)
{
	told->go = false;
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(sysfs_write("ring_patience", patience) == 0);
}

static void exchanges_messages(void)
{
	struct port port;
	uint64_t line[8];
	unsigned int i;

	port_open(&port, VELO_CARD_ANY);
	for (i = 0; i < 10; i++) {
		make_line(line, (uint8_t)i, 2);
		send_line(&port, 1, line, 2);
		if (!receive(&port, (uint8_t)i, 2, port.take.number))
			return;
	}
}

static void puts_into_memory(void)
{
	struct port port;
	uint32_t page;
	unsigned int i;

	port_open(&port, VELO_CARD_ANY);
	CHECK(context_enter(port.file, pages(1), PAGE, 7, &page) == 0);
	for (i = 0; i < 10; i++)
		if (!CHECK(put(&port, page, page, 64) == VELO_ERROR_NONE))
			return;
}

static void who_never_reads_its_ring_stops_nobody(void)
{
	long dropped = sysfs_number("counters/dropped");
	pid_t hog = hog_start(never_reads_its_ring, PATIENCE_HERE);

	user_end(user_start(HEIR, exchanges_messages));
	user_end(user_start(HEIR, puts_into_memory));
	/* The card counts the messages that it dropped. */
	CHECK(sysfs_number("counters/dropped") > dropped);
	CHECK(sysfs_number("counters/completer_error") == VELO_ERROR_STALL);
	hog_end(hog);
}

static void who_never_reads_its_queue_stops_nobody(void)
{
	pid_t hog = hog_start(never_reads_its_queue, PATIENCE_HERE);

	user_end(user_start(HEIR, puts_into_memory));
	user_end(user_start(HEIR, exchanges_messages));
	CHECK(sysfs_number("counters/rma_error") == VELO_ERROR_STALL);
	hog_end(hog);
}

/* Long beside what a message takes without a wait, and a second of a simulated card. */
#define PATIENCE_CYCLES 200000u

/* A message to a ring that nobody reads, and a bystander's behind it: how long that one takes. */
static uint32_t held_up(struct port *full, struct port *bystander, uint8_t tag)
{
	uint64_t line[8];
	uint32_t begun;

	make_line(line, tag, 2);
	begun = cycle();
	send_line(full, 1, line, 2);
	send_line(bystander, 1, line, 2);
	CHECK(receive(bystander, tag, 2, bystander->take.number));
	return cycle() - begun;
}

static void fill(struct port *port)
{
	uint64_t line[8];
	unsigned int i;

	/* A single word the host cannot split, and so it takes a single slot. */
	make_line(line, 1, 1);
	for (i = 0; i < port->take.ring_slots; i++) {
		send_line(port, 0, line, 1);
		wait_until_taken(port);
	}
}

static void tells_how_long_full_rings_hold_up(void)
{
	struct port full[2], bystander;
	uint32_t took;
	unsigned int i, j;

	port_open(&bystander, VELO_CARD_ANY);
	for (i = 0; i < 2; i++) {
		port_open(&full[i], VELO_CARD_ANY);
		fill(&full[i]);
		took = held_up(&full[i], &bystander, 2);
		printf("# the first message for full ring %u held up for %u cycles\n", i, took);
		CHECK(took >= PATIENCE_CYCLES);
		for (j = 0; j <= i; j++) {
			took = held_up(&full[j], &bystander, 3);
			printf("# the next one for full ring %u: %u cycles\n", j, took);
			CHECK(took < PATIENCE_CYCLES / 2);
		}
	}
}

static void a_full_ring_holds_up_others_once(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%u", PATIENCE_CYCLES);
	CHECK(sysfs_number("ring_patience") == 16384);
	CHECK(sysfs_write("ring_patience", text) == 0);
	user_end(user_start(OWNER, tells_how_long_full_rings_hold_up));
	CHECK(sysfs_write("ring_patience", patience) == 0);
}

/* --- lines for stores ------------------------------------------------------------------------- */

/* Of one burst; its ring is full, so as many of its stores leave. */
#define TAKEN 8u

/*
 * The hog never waits for a line: it stores by its pages and by calls, to itself, and reads little, so
 * that its stores leave slowly. It says so once it has lost some, and was told that a call's may be one of them.
 */
static void overruns_its_lines(void)
{
	const volatile uint64_t *slot;
	struct port port;
	uint64_t line[2];
	bool is_told = false;
	unsigned int i;
	off_t target;

	port_open(&port, VELO_CARD_ANY);
	target = (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS,
					 target_page(port.take.node, port.take.number) | 1 << 6);
	make_line(line, 1, 2);
	while (told->go) {
		for (i = 0; i < 2 * port.take.store_lines; i++)
			send_line(&port, 1, line, 2);
		if (pwrite(port.file, line, sizeof(line), target) < 0 && errno == EIO)
			is_told = true;
		for (i = 0; i < TAKEN; i++) {
			slot = port.ring + port.head % port.take.ring_slots * 8;
			if (velo_header_valid(slot[0]) && velo_header_seq(slot[0]) == port.head)
				ring_read_to(&port, ++port.head);
		}
		told->is_full = is_told && dropped(&port) > 0;
	}
}

/* As many messages under way as its lines surely hold, by its pages; then some by calls. */
static void keeps_to_its_lines(void)
{
	struct port port;
	uint64_t line[2];
	unsigned int round, i;
	off_t target;

	port_open(&port, VELO_CARD_ANY);
	CHECK(port.take.store_lines == PORT_LINES);
	target = (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS,
					 target_page(port.take.node, port.take.number) | 1 << 6);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < PORT_LINES / 2; i++) {
			make_line(line, (uint8_t)i, 2);
			send_line(&port, 1, line, 2);
		}
		for (i = 0; i < PORT_LINES / 2; i++)
			if (!receive(&port, (uint8_t)i, 2, port.take.number))
				return;
		make_line(line, (uint8_t)i, 2);
		if (!CHECK(write_patiently(&port, line, sizeof(line), target)) ||
		    !receive(&port, (uint8_t)i, 2, port.take.number))
			return;
	}
	CHECK(dropped(&port) == 0);
}

static void who_overruns_its_lines_loses_its_own_alone(void)
{
	long before = sysfs_number("counters/pcie_stores_dropped"), during;
	/* A message for a full ring waits for ever, so stores leave only as the hog reads. */
	pid_t hog = hog_start(overruns_its_lines, "0");

	during = sysfs_number("counters/pcie_stores_dropped");
	CHECK(during != before);
	user_end(user_start(HEIR, keeps_to_its_lines));
	user_end(user_start(HEIR, puts_into_memory));
	/* It went on meanwhile. */
	CHECK(sysfs_number("counters/pcie_stores_dropped") != during);
	hog_end(hog);
}

static void has_no_lines(void)
{
	uint32_t lost = maps_pages();
	struct port port;
	uint64_t line[2];
	off_t target;

	/* Nor does it get one of another's by storing to its pages all the same. */
	CHECK(port_try(&port, VELO_CARD_ANY, 0, PORT_ITSELF) && port.take.store_lines == 0);
	make_line(line, 1, 1);
	if (maps_pages())
		store(port.target, line, 1);
	CHECK(dropped(&port) == lost);
	/* What the kernel stores for it is taken. */
	make_line(line, 2, 2);
	target = (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS,
					 target_page(port.take.node, port.take.number) | 1 << 6);
	CHECK(write_patiently(&port, line, sizeof(line), target));
	CHECK(receive(&port, 2, 2, port.take.number));
	CHECK(dropped(&port) == lost);
	port_close(&port);
	/* The next owner of the number begins anew. */
	CHECK(port_try(&port, port.take.number, 0, PORT_ITSELF) && dropped(&port) == 0);
}

static void who_has_no_lines_takes_none(void)
{
	user_end(user_start(OWNER, has_no_lines));
}

/* --- nodes that cannot be reached ------------------------------------------------------------- */

/* A link without a cable, whether this node has a neighbour or not, and a node that is behind it. */
#define LINK 2u
#define BEHIND_THE_LINK 98

static long link_counter(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "counters/link%u_%s", LINK, name);
	return sysfs_number(path);
}

static bool port_to_the_link(struct port *port)
{
	return CHECK(port_try(port, VELO_CARD_ANY, LINE_WORDS, target_page(BEHIND_THE_LINK, 0)));
}

static void send_by_the_link(struct port *port)
{
	uint64_t line[LINE_WORDS];

	make_line(line, 1, LINE_WORDS);
	send_line(port, LINE_WORDS - 1, line, LINE_WORDS);
	wait_until_taken(port);
}

/* What stands in front of the link must not stand in anybody's way. */
static void floods_the_link(void)
{
	struct port port;
	unsigned int i;

	if (!port_to_the_link(&port))
		return;
	for (i = 0; told->go; i++) {
		told->is_full = i > 2;
		send_by_the_link(&port);
	}
}

static void sends_one_by_the_link(void)
{
	struct port port;

	if (port_to_the_link(&port))
		send_by_the_link(&port);
}

/* Ways of packets, beside links: none, and back to this node. */
#define NOWHERE 14
#define BACK 15

/* Nodes whose packets come back, and whose answers so are none. Nobody has asked the second before. */
#define UNANSWERING 99
#define NEVER_ASKED 100

static void gets_from_nowhere(void)
{
	const off_t descriptors = (off_t)VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0);
	uint64_t words[VELO_RMA_DESCRIPTOR_WORDS] = { 0 };
	struct port port;
	uint32_t page;
	unsigned int i;

	port_open(&port, VELO_CARD_ANY);
	CHECK(context_enter(port.file, pages(1), PAGE, 7, &page) == 0);
	words[0] = velo_rma_descriptor_word0_pack(VELO_RMA_OP_GET, 0, 0, UNANSWERING,
						  (uint8_t)port.take.number, 17, 64);
	words[1] = velo_registered_address_pack(0, page);
	words[2] = velo_registered_address_pack(0, page);
	for (i = 0; told->go; i++) {
		told->is_full = i > 5;
		(void)!pwrite(port.file, words, sizeof(words), descriptors);
	}
}

/* For a simulated card, as above. */
static void set_times(const char *access, const char *answer)
{
	CHECK(sysfs_write("access_patience", access) == 0);
	CHECK(sysfs_write("answer_patience", answer) == 0);
}

static void hog_of_the_network(void (*hogs)(void), const char *name)
{
	char access[32], answer[32];
	unsigned int i;
	pid_t pid;

	snprintf(access, sizeof(access), "%ld", sysfs_number("access_patience"));
	snprintf(answer, sizeof(answer), "%ld", sysfs_number("answer_patience"));
	CHECK(sysfs_number(name) > 0);
	/* What the driver has left at 0 stays so. */
	set_times(sysfs_number("access_patience") ? "4000" : "0",
		  sysfs_number("answer_patience") ? "8000" : "0");
	pid = hog_start(hogs, PATIENCE_HERE);
	/* As long as it is not yet known that the link is down, all wait for it. */
	for (i = 0; i < 6000 && sysfs_number("links") && !link_counter("dead"); i++)
		usleep(10000);
	user_end(user_start(HEIR, exchanges_messages));
	user_end(user_start(HEIR, puts_into_memory));
	hog_end(pid);
	/* Descriptors are worked off in order: what it has left is over before the times change. */
	user_end(user_start(HEIR, puts_into_memory));
	set_times(access, answer);
}

static void set_way(unsigned int to_node, unsigned int way)
{
	char routes[32];

	snprintf(routes, sizeof(routes), "%u %u", to_node, way);
	CHECK(sysfs_write("routes", routes) == 0);
}

static void a_link_that_is_down_stops_nobody(void)
{
	char links[32];
	long undelivered;

	snprintf(links, sizeof(links), "%u", 1u << LINK);
	set_way(BEHIND_THE_LINK, LINK);
	CHECK(sysfs_write("links", links) == 0);
	hog_of_the_network(floods_the_link, "access_patience");
	CHECK(link_counter("dead") == 1);
	/* This count has 8 bits, so after the flood it can be 0 as well. */
	undelivered = link_counter("undelivered");
	user_end(user_start(HEIR, sends_one_by_the_link));
	undelivered = link_counter("undelivered") - undelivered;
	CHECK((undelivered & 0xff) == 1);
	CHECK(sysfs_write("links", "0") == 0);
	set_way(BEHIND_THE_LINK, NOWHERE);
}

static void a_node_that_never_answers_stops_nobody(void)
{
	set_way(UNANSWERING, BACK);
	hog_of_the_network(gets_from_nowhere, "answer_patience");
	set_way(UNANSWERING, NOWHERE);
	CHECK(sysfs_write("answer_patience", "1") == EINVAL);
}

/* A get of which no answer comes. */
static void ask_nobody(struct port *port, uint32_t page)
{
	uint64_t words[VELO_RMA_DESCRIPTOR_WORDS] = { 0 };

	words[0] = velo_rma_descriptor_word0_pack(VELO_RMA_OP_GET, 0, 0, NEVER_ASKED,
						  (uint8_t)port->take.number, 17, 8);
	words[1] = velo_registered_address_pack(0, page);
	words[2] = velo_registered_address_pack(0, page);
	CHECK(write_patiently(port, words, sizeof(words),
			      (off_t)VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0)));
}

/* Cycles that a put of the port itself takes behind so many gets that nobody answers. */
static uint32_t put_behind(struct port *asks, struct port *puts, uint32_t ask_page,
			   uint32_t put_page, unsigned int gets)
{
	uint32_t begun = cycle();
	unsigned int i;

	for (i = 0; i < gets; i++)
		ask_nobody(asks, ask_page);
	CHECK(put(puts, put_page, put_page, 8) == VELO_ERROR_NONE);
	return cycle() - begun;
}

#define ANSWER_CYCLES 400000u
/* As many as a node may owe, and two more that wait for a place. */
#define GETS 7u
/* rtl/rma/rtl/velo_rma_pending.sv: so long at most a silent node's place is waited for. */
#define PROBE_CYCLES 8192u

static void tells_how_long_a_silent_node_holds_up(void)
{
	struct port asks, puts;
	uint32_t ask_page, put_page, first, next, begun;
	uint64_t answer[2];
	unsigned int i;

	port_open(&asks, VELO_CARD_ANY);
	port_open(&puts, VELO_CARD_ANY);
	CHECK(context_enter(asks.file, pages(1), PAGE, 7, &ask_page) == 0);
	CHECK(context_enter(puts.file, pages(1), PAGE, 7, &put_page) == 0);
	begun = cycle();
	first = put_behind(&asks, &puts, ask_page, put_page, GETS);
	for (i = 0; i < GETS; i++)
		CHECK(notified(&asks, answer));
	CHECK(cycle() - begun >= ANSWER_CYCLES);
	next = put_behind(&asks, &puts, ask_page, put_page, GETS);
	/* What waits for an answer would stand in the way of the next test. */
	for (i = 0; i < GETS; i++)
		CHECK(notified(&asks, answer));
	printf("# a node that does not answer held up a put for %u cycles, and then for %u\n", first,
	       next);
	CHECK(first >= ANSWER_CYCLES / 2);
	CHECK(next < ANSWER_CYCLES / 2 && next >= PROBE_CYCLES / 2);
}

static void a_node_that_does_not_answer_holds_up_others_once(void)
{
	char before[32], text[32];

	snprintf(before, sizeof(before), "%ld", sysfs_number("answer_patience"));
	snprintf(text, sizeof(text), "%u", ANSWER_CYCLES);
	CHECK(!strcmp(before, "8388608"));
	set_way(NEVER_ASKED, BACK);
	CHECK(sysfs_write("answer_patience", text) == 0);
	user_end(user_start(HEIR, tells_how_long_a_silent_node_holds_up));
	CHECK(sysfs_write("answer_patience", before) == 0);
	set_way(NEVER_ASKED, NOWHERE);
}

/* Nothing else happens on the card meanwhile. */
static void sleeps_until_a_get_is_given_up(void)
{
	const off_t descriptors = (off_t)VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0);
	uint64_t words[VELO_RMA_DESCRIPTOR_WORDS] = { 0 }, answer[2] = { 0 };
	struct port port;
	uint32_t page;

	port_open(&port, VELO_CARD_ANY);
	CHECK(context_enter(port.file, pages(1), PAGE, 7, &page) == 0);
	words[0] = velo_rma_descriptor_word0_pack(VELO_RMA_OP_GET, VELO_RMA_PLACE_REQUESTER, 0,
						  UNANSWERING, (uint8_t)port.take.number, 17, 64);
	words[1] = velo_registered_address_pack(0, page);
	words[2] = velo_registered_address_pack(0, page);
	CHECK(pwrite(port.file, words, sizeof(words), descriptors) == sizeof(words));
	CHECK(notified(&port, answer));
	CHECK(velo_rma_notification_error(answer[0]) == VELO_ERROR_LOST);
}

static void who_waits_for_an_answer_that_never_comes_is_woken(void)
{
	char before[32];

	snprintf(before, sizeof(before), "%ld", sysfs_number("answer_patience"));
	set_way(UNANSWERING, BACK);
	CHECK(sysfs_write("answer_patience", "200000") == 0);
	user_end(user_start(HEIR, sleeps_until_a_get_is_given_up));
	CHECK(sysfs_write("answer_patience", before) == 0);
	set_way(UNANSWERING, NOWHERE);
}

/* --- sending --------------------------------------------------------------------------------- */

/* Adds one as often as a call says so, while the node takes nothing; later the sum must be that. */
static void adds_while_the_way_is_full(void)
{
	const size_t words = VELO_RMA_DESCRIPTOR_WORDS + VELO_RMA_OPERANDS_WORDS;
	const off_t descriptors = (off_t)VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0);
	uint64_t add[VELO_RMA_DESCRIPTOR_WORDS + VELO_RMA_OPERANDS_WORDS];
	unsigned int done = 0, refused = 0;
	volatile uint64_t *sum;
	struct port port;
	uint32_t page;

	port_open(&port, VELO_CARD_ANY);
	sum = pages(2);
	CHECK(context_enter(port.file, (void *)sum, 2 * PAGE, 7, &page) == 0);
	add[0] = velo_rma_descriptor_word0_pack(VELO_RMA_OP_FETCH_COMPARE_ADD, 0, 1,
						(uint8_t)port.take.node,
						(uint8_t)port.take.number, 17, 8);
	add[1] = velo_registered_address_pack(0, page + 1);
	add[2] = velo_registered_address_pack(0, page);
	add[3] = 0;
	add[4] = 1;
	while (refused < 5) {
		ssize_t len_bytes = pwrite(port.file, add, words * 8, descriptors);

		CHECK(len_bytes == (ssize_t)words * 8 || errno == EAGAIN);
		if (len_bytes > 0)
			done++;
		else
			refused++;
	}
	told->is_refused = true; /* Root lets the node go on. */
	while (told->is_refused)
		usleep(1000);
	/* Descriptors of a context are worked off in order. */
	wait_until_taken(&port);
	CHECK(put(&port, page + 1, page + 1, 64) == VELO_ERROR_NONE);
	printf("# %u adds taken and %u refused: the sum is %lu\n", done, refused,
	       (unsigned long)*sum);
	CHECK(done > 0 && *sum == done);
}

static void a_refused_add_is_never_done(void)
{
	pid_t hog = hog_start(never_reads_its_queue, "0"), adder;

	told->is_refused = false;
	adder = beside_start(HEIR, adds_while_the_way_is_full);
	beside_await(adder, &told->is_refused);
	CHECK(sysfs_write("ring_patience", PATIENCE_HERE) == 0);
	told->is_refused = false;
	beside_end(adder);
	hog_end(hog);
}

/* --- interrupts ------------------------------------------------------------------------------- */

/* How often a vector interrupts then is the hardware's to keep (rtl/pcie). */
static void interrupts_have_a_limit(void)
{
	long cycles = sysfs_number("moderation");
	char text[32];

	CHECK(cycles > 0);
	CHECK(sysfs_write("moderation", "65536") == EINVAL);
	CHECK(sysfs_write("moderation", "65535") == 0 && sysfs_number("moderation") == 65535);
	snprintf(text, sizeof(text), "%ld", cycles);
	CHECK(sysfs_write("moderation", text) == 0 && sysfs_number("moderation") == cycles);
}

/* --- the end of things ------------------------------------------------------------------------ */

static void has_a_message_and_tells_it(void)
{
	struct port port;
	uint64_t line[8];

	port_open_at(&port, NUMBER, VELO_CARD_ANY);
	make_line(line, 7, 8);
	send_line(&port, 7, line, 8);
	CHECK(receive(&port, 7, 8, NUMBER));
}

static void sees_nothing_of_the_next_owner(void)
{
	struct port port;
	struct pollfd poll_file;
	volatile uint64_t *ring;
	uint64_t word = 0;
	unsigned int i;

	port_open_at(&port, NUMBER, VELO_CARD_ANY);
	poll_file = (struct pollfd){ port.file, POLLIN, 0 };
	ring = (volatile uint64_t *)port.ring;
	CHECK(ring[0] == 0);
	told->go = true;
	while (told->go) /* Root resets the card, and another one takes the number. */
		usleep(1000);
	CHECK(poll(&poll_file, 1, 0) == 1 && poll_file.revents & POLLHUP);
	CHECK_FAILS(pread(port.file, &word, 8, (off_t)VELO_CARD_OFFSET(VELO_CARD_STORES, 0)), ENODEV);
	if (maps_pages()) {
		CHECK(store_signal(port.target + 8) == 0);
		CHECK(store_signal(port.descriptors) == 0);
		CHECK(store_signal(port.ring_pointer) == 0);
		CHECK(store_signal(port.queue_pointer) == 0);
	}
	for (i = 0; i < port.take.ring_slots * 8; i++)
		word |= ring[i];
	for (i = 0; i < port.take.queue_entries * 2; i++)
		word |= port.queue[i];
	CHECK(word == 0);
	if (maps_pages())
		port.target[0] = 1; /* Which is no notification. */
	CHECK(port.queue[0] == 0 && ring[0] == 0);
	port.queue[1] = 2;
	CHECK(port.queue[1] == 2 && ring[1] == 0);
}

static void reset_is_an_error_and_no_signal(void)
{
	const long cycles = sysfs_number("ring_patience"), moderation = sysfs_number("moderation");
	int reset_file;
	pid_t pid;

	/* The second as the card has it: it was told when it was found. */
	CHECK(cycles > 0 && moderation > 0);
	told->go = false;
	pid = beside_start(OWNER, sees_nothing_of_the_next_owner);
	beside_await(pid, &told->go);
	reset_file = open(SYSFS "device/reset", O_WRONLY | O_CLOEXEC);
	CHECK(reset_file >= 0 && write(reset_file, "1", 1) == 1);
	close(reset_file);
	CHECK(sysfs_number("ring_patience") == cycles && sysfs_number("moderation") == moderation);
	user_end(user_start(HEIR, has_a_message_and_tells_it));
	told->go = false;
	beside_end(pid);
}

/* --- the machine ------------------------------------------------------------------------------ */

#define PCI_CAPABILITIES 0x34
#define PCI_CAPABILITY_EXPRESS 0x10
#define PCI_DEVICE_CONTROL 8
#define PCI_REPORTS_UNSUPPORTED 0x8

/* Where the card's register "device control" is. */
static off_t device_control(int config)
{
	uint8_t at = 0, kind = 0;

	CHECK(pread(config, &at, 1, PCI_CAPABILITIES) == 1);
	while (at && pread(config, &kind, 1, at) == 1 && kind != PCI_CAPABILITY_EXPRESS)
		if (pread(config, &at, 1, at + 1) != 1)
			break;
	CHECK(kind == PCI_CAPABILITY_EXPRESS);
	return at + PCI_DEVICE_CONTROL;
}

/* A process may store bytes, which the card refuses: the machine must hear nothing of it. */
static void a_bad_store_is_no_failure_of_the_machine(void)
{
	int config = open(SYSFS "device/config", O_RDWR | O_CLOEXEC);
	char slot[PATH_MAX], *name;
	uint16_t word = 0;
	off_t at = device_control(config);

	CHECK(realpath(SYSFS "device", slot));
	name = strrchr(slot, '/') + 1;
	CHECK(file_write("/sys/bus/pci/drivers/velo/unbind", name) == 0);
	CHECK(pread(config, &word, 2, at) == 2);
	word |= PCI_REPORTS_UNSUPPORTED;
	CHECK(pwrite(config, &word, 2, at) == 2);
	CHECK(pread(config, &word, 2, at) == 2 && word & PCI_REPORTS_UNSUPPORTED);
	CHECK(file_write("/sys/bus/pci/drivers/velo/bind", name) == 0);
	CHECK(pread(config, &word, 2, at) == 2 && !(word & PCI_REPORTS_UNSUPPORTED));
	close(config);
	CHECK(chmod(DEVICE, 0666) == 0);
	user_end(user_start(HEIR, exchanges_messages));
}

/*
 * Some device of the guest refuses to sleep. So that the card sleeps before it is asked, the card
 * is the last one that was found.
 */
static void sleep_is_as_a_reset(void)
{
	struct pollfd poll_file = { -1, POLLIN, 0 };
	struct velo_card_take take;
	long resets;

	card_pull_out();
	card_plug_in();
	CHECK(chmod(DEVICE, 0666) == 0);
	resets = sysfs_number("resets");
	poll_file.fd = context_open(&take);
	(void)file_write("/sys/power/state", "freeze");
	CHECK(sysfs_number("resets") == resets + 1);
	CHECK(poll(&poll_file, 1, 0) == 1 && poll_file.revents & POLLHUP);
	close(poll_file.fd);
	user_end(user_start(HEIR, exchanges_messages));
	user_end(user_start(HEIR, puts_into_memory));
}

/* Whether a file of the card comes to say this, within ten seconds. */
static bool comes_to(const char *name, const char *text)
{
	char path[PATH_MAX], said[64];
	unsigned int i;

	snprintf(path, sizeof(path), SYSFS "%s", name);
	for (i = 0; i < 1000; i++) {
		(void)file_read(path, said, sizeof(said));
		if (!strncmp(said, text, strlen(text)))
			return true;
		usleep(10000);
	}
	printf("# %s says %s\n", name, said);
	return false;
}

#define STATUS "device/power/runtime_status"

static void a_card_that_nobody_uses_sleeps(void)
{
	const long moderation = sysfs_number("moderation"), resets = sysfs_number("resets");
	struct velo_card_take take;
	char text[32];
	int file;

	CHECK(comes_to(STATUS, "active"));
	CHECK(sysfs_write("device/power/autosuspend_delay_ms", "10") == 0);
	CHECK(sysfs_write("device/power/control", "auto") == 0);
	CHECK(comes_to(STATUS, "suspended"));
	CHECK(comes_to("device/power_state", "D3hot"));
	/* What it is told in its sleep it knows afterwards: with a context it says so itself. */
	CHECK(sysfs_write("moderation", "12345") == 0);
	CHECK(comes_to(STATUS, "suspended"));
	file = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (!CHECK(context_take(file, VELO_CARD_ANY, &take) == 0))
		return;
	CHECK(sysfs_number("moderation") == 12345);
	user_end(user_start(HEIR, exchanges_messages));
	usleep(300000);
	CHECK(sysfs_write("moderation", "12346") == 0 && sysfs_number("moderation") == 12346);
	CHECK(comes_to(STATUS, "active"));
	close(file);
	CHECK(comes_to(STATUS, "suspended"));
	/* Counters tell how it is now; they begin anew. */
	CHECK(sysfs_number("counters/sent") == 0);
	CHECK(comes_to(STATUS, "suspended"));
	user_end(user_start(HEIR, exchanges_messages));
	user_end(user_start(HEIR, puts_into_memory));
	CHECK(comes_to(STATUS, "suspended"));
	/* It forwards for others. */
	CHECK(sysfs_write("links", "1") == 0);
	usleep(300000);
	CHECK(comes_to(STATUS, "active"));
	CHECK(sysfs_write("links", "0") == 0);
	CHECK(comes_to(STATUS, "suspended"));
	snprintf(text, sizeof(text), "%ld", moderation);
	CHECK(sysfs_write("moderation", text) == 0);
	CHECK(sysfs_write("device/power/autosuspend_delay_ms", "2000") == 0);
	CHECK(sysfs_write("device/power/control", "on") == 0);
	CHECK(sysfs_number("moderation") == moderation && sysfs_number("resets") == resets);
}

/* --- errors that the bus reports -------------------------------------------------------------- */

#define INJECTOR "/dev/aer_inject"
#define PCI_POISONED 0x1000u /* which is not fatal by itself */
#define PCI_MALFORMED 0x40000u /* which is */

/* As drivers/pci/pcie/aer_inject.c has it. */
struct injected {
	uint8_t bus, device, function;
	uint32_t uncorrectable, correctable, header[4], domain;
};

static bool inject(uint32_t uncorrectable)
{
	struct injected error = { .uncorrectable = uncorrectable };
	unsigned int bus, device, function;
	char slot[PATH_MAX];
	int file = open(INJECTOR, O_WRONLY | O_CLOEXEC);
	bool is_done;

	if (!realpath(SYSFS "device", slot) ||
	    sscanf(strrchr(slot, '/'), "/%x:%x:%x.%x", &error.domain, &bus, &device, &function) != 4)
		return false;
	error.bus = (uint8_t)bus;
	error.device = (uint8_t)device;
	error.function = (uint8_t)function;
	is_done = write(file, &error, sizeof(error)) == sizeof(error);
	close(file);
	return is_done;
}

static void an_error_that_is_not_fatal_ends_nothing(void)
{
	const long resets = sysfs_number("resets");
	struct pollfd poll_file = { -1, POLLIN, 0 };
	struct velo_card_take take;

	poll_file.fd = context_open(&take);
	CHECK(inject(PCI_POISONED));
	CHECK(poll(&poll_file, 1, 1000) == 0);
	if (CHECK(sysfs_number("resets") == resets && sysfs_number("broken") == 0))
		user_end(user_start(HEIR, exchanges_messages));
	close(poll_file.fd);
}

static void a_fatal_error_is_as_a_reset(void)
{
	const long resets = sysfs_number("resets"), moderation = sysfs_number("moderation");
	struct pollfd poll_file = { -1, POLLIN, 0 };
	struct velo_card_take take;
	char text[32];
	uint32_t page;

	poll_file.fd = context_open(&take);
	CHECK(context_enter(poll_file.fd, pages(1), PAGE, 7, &page) == 0);
	CHECK(inject(PCI_MALFORMED));
	CHECK(poll(&poll_file, 1, 60000) == 1 && poll_file.revents & POLLHUP);
	CHECK_FAILS(context_withdraw(poll_file.fd, page), ENODEV);
	close(poll_file.fd);
	snprintf(text, sizeof(text), "%ld", resets + 1);
	CHECK(comes_to("resets", text));
	CHECK(comes_to("broken", "0"));
	CHECK(sysfs_number("moderation") == moderation);
	user_end(user_start(HEIR, exchanges_messages));
	user_end(user_start(HEIR, puts_into_memory));
}

/* --- grants ----------------------------------------------------------------------------------- */

static void shows_memory(void)
{
	uint64_t *memory = pages(1);
	struct port port;

	port_open_at(&port, NUMBER, VELO_CARD_ANY);
	memory[0] = SHOWN;
	CHECK(context_enter(port.file, memory, PAGE, 7, &told->page) == 0);
}

static void is_refused_what_is_shown(void)
{
	struct velo_card_take take;
	int file = context_open(&take);
	uint64_t *memory = pages(1);
	unsigned int op;
	uint32_t page;

	CHECK(context_enter(file, memory, PAGE, 7, &page) == 0);
	for (op = VELO_RMA_OP_PUT; op <= VELO_RMA_OP_NOTIFY; op++)
		CHECK_FAILS(descriptor_write(file, op, take.node, NUMBER, page), EPERM);
	CHECK_FAILS((long)context_map(file, VELO_CARD_DESCRIPTORS, 0, PAGE, PROT_WRITE),
		    maps_pages() ? EPERM : EOPNOTSUPP);
	CHECK(memory[0] == 0);
}

static void gets_what_is_shown_and_no_more(void)
{
	uint64_t words[VELO_RMA_DESCRIPTOR_WORDS + VELO_RMA_OPERANDS_WORDS], *memory = pages(1);
	struct port port;
	uint32_t page;

	CHECK(port_try(&port, VELO_CARD_ANY, PORT_LINES,
		       target_page((uint32_t)sysfs_number("node"), NUMBER)));
	CHECK(port.descriptors == MAP_FAILED);
	CHECK(context_enter(port.file, memory, PAGE, 7, &page) == 0);
	descriptor_make(words, VELO_RMA_OP_GET, port.take.node, NUMBER, page);
	CHECK(post(&port, words) == VELO_ERROR_NONE);
	CHECK(memory[0] == SHOWN);
	CHECK_FAILS(descriptor_write(port.file, VELO_RMA_OP_GET, port.take.node, NUMBER + 1, page),
		    EPERM);
	CHECK_FAILS(descriptor_write(port.file, VELO_RMA_OP_GET, port.take.node ^ 1, NUMBER, page),
		    EPERM);
}

/*
 * Of an update that the host splits, the last three words may look as a put. The driver has judged
 * the first word alone, so the card must not carry out these three.
 */
static void stores_the_end_of_a_descriptor(void)
{
	const unsigned int places = VELO_RMA_PLACE_REQUESTER | VELO_RMA_PLACE_COMPLETER;
	uint64_t words[VELO_RMA_DESCRIPTOR_WORDS] = { 0 }, answer[2] = { 0 };
	struct port port;

	port_open(&port, VELO_CARD_ANY);
	if (!CHECK(port.descriptors != MAP_FAILED))
		return;
	words[0] = velo_rma_descriptor_word0_pack(VELO_RMA_OP_NOTIFY, places, 0,
						  (uint8_t)port.take.node,
						  (uint8_t)port.take.number, 17, 0);
	store(port.descriptors + VELO_RMA_OPERANDS_WORDS, words, VELO_RMA_DESCRIPTOR_WORDS);
	CHECK(notified(&port, answer));
	CHECK(was_split(&port, answer));
	CHECK(post(&port, words) == VELO_ERROR_NONE);
}

static void a_part_of_a_descriptor_is_none(void)
{
	user_end(user_start(HEIR, stores_the_end_of_a_descriptor));
}

static void remote_memory_wants_a_grant(void)
{
	struct user owner;
	char text[64];

	snprintf(text, sizeof(text), "none\n%u 0-255 0-255\n", OWNER);
	CHECK(sysfs_write("grants", text) == 0);
	owner = user_start(OWNER, shows_memory);
	user_end(user_start(PEER, is_refused_what_is_shown));
	snprintf(text, sizeof(text), "%u %ld %u\n", PEER, sysfs_number("node"), NUMBER);
	CHECK(sysfs_write("grants", text) == 0);
	user_end(user_start(PEER, gets_what_is_shown_and_no_more));
	user_end(owner);
	CHECK(sysfs_write("grants", "none all") == 0 && sysfs_write("release", "all") == 0);
}

/* --- pages of the card ------------------------------------------------------------------------ */

/* Pages of the card beside each other, all in one of the system's if that is larger. */
#define BESIDE 16u
#define ENTERED 5u

static bool is_all(const uint8_t *at, uint8_t value, size_t len_bytes)
{
	return at[0] == value && !memcmp(at, at + 1, len_bytes - 1);
}

static void enters_one_of_its_pages(void)
{
	uint8_t *memory = pages(BESIDE), *from = pages(BESIDE);
	uint32_t from_page, page;
	struct port port;

	port_open(&port, VELO_CARD_ANY);
	memset(memory, 1, BESIDE * PAGE);
	memset(from, 2, BESIDE * PAGE);
	CHECK(context_enter(port.file, from, BESIDE * PAGE, VELO_CARD_READ, &from_page) == 0);
	CHECK(context_enter(port.file, memory + ENTERED * PAGE, PAGE, 7, &page) == 0);
	CHECK(sysfs_number("pages") == BESIDE + 1);
	CHECK(put(&port, from_page, page, PAGE) == VELO_ERROR_NONE);
	CHECK(is_all(memory, 1, ENTERED * PAGE));
	CHECK(is_all(memory + ENTERED * PAGE, 2, PAGE));
	CHECK(is_all(memory + (ENTERED + 1) * PAGE, 1, (BESIDE - ENTERED - 1) * PAGE));
	/* What comes behind it in the table is none of it. */
	CHECK(put(&port, from_page, page + 1, 64) == VELO_ERROR_UNREGISTERED);
	CHECK(put(&port, from_page, page, PAGE + 64) == VELO_ERROR_UNREGISTERED);
	CHECK(is_all(memory + (ENTERED + 1) * PAGE, 1, (BESIDE - ENTERED - 1) * PAGE));
	/* Nor is it reached by what its neighbour was entered for. */
	memset(memory + ENTERED * PAGE, 3, PAGE);
	CHECK(context_enter(port.file, memory + (ENTERED + 1) * PAGE, PAGE, VELO_CARD_READ,
			    &from_page) == 0);
	CHECK(put(&port, from_page, page, PAGE) == VELO_ERROR_NONE);
	CHECK(is_all(memory, 1, BESIDE * PAGE));
	CHECK(put(&port, page, from_page, PAGE) == VELO_ERROR_RIGHT);
	/* They go one by one. */
	CHECK(context_withdraw(port.file, from_page) == 0);
	CHECK(put(&port, page, page, PAGE) == VELO_ERROR_NONE);
	CHECK(put(&port, from_page, page, PAGE) == VELO_ERROR_UNREGISTERED);
	port_close(&port);
}

static void memory_is_reached_where_it_was_entered_and_not_beside(void)
{
	user_end(user_start(OWNER, enters_one_of_its_pages));
}

/* --- cgroups ---------------------------------------------------------------------------------- */

#define CGROUPS "/sys/fs/cgroup/"
#define CGROUP CGROUPS "velo-contract/"

static bool cgroup_has(const char *line)
{
	char text[256];

	CHECK(file_read(CGROUP "rdma.current", text, sizeof(text)) >= 0);
	return strstr(text, line);
}

/* Root, too, has no more than its cgroup may. */
static void a_cgroup_has_no_more_than_it_may(void)
{
	int file = open(DEVICE, O_RDWR | O_CLOEXEC), other = open(DEVICE, O_RDWR | O_CLOEXEC);
	struct velo_card_take take;
	uint32_t page, more;

	CHECK(file_write(CGROUPS "cgroup.subtree_control", "+rdma") == 0);
	CHECK(mkdir(CGROUP, 0755) == 0 || errno == EEXIST);
	CHECK(file_write(CGROUP "rdma.max", "velo0 hca_handle=1 hca_object=2") == 0);
	CHECK(file_write(CGROUP "cgroup.procs", "0") == 0);
	CHECK(context_take(file, VELO_CARD_ANY, &take) == 0);
	CHECK_FAILS(context_take(other, VELO_CARD_ANY, &take), EDQUOT);
	CHECK(context_enter(file, pages(1), PAGE, 3, &page) == 0);
	CHECK(context_enter(file, pages(4), 4 * PAGE, 3, &more) == 0);
	CHECK_FAILS(context_enter(file, pages(1), PAGE, 3, &more), EDQUOT);
	CHECK(cgroup_has("velo0 hca_handle=1 hca_object=2"));
	CHECK(context_withdraw(file, page) == 0);
	CHECK(context_enter(file, pages(1), PAGE, 3, &page) == 0);
	/* A call that fails for another reason counts nothing. */
	CHECK(context_withdraw(file, page) == 0);
	CHECK_FAILS(context_enter(file, NULL, PAGE, 3, &page), EFAULT);
	CHECK(cgroup_has("velo0 hca_handle=1 hca_object=1"));
	close(file);
	CHECK(!cgroup_has("=1"));
	CHECK(context_take(other, VELO_CARD_ANY, &take) == 0);
	close(other);
	CHECK(file_write(CGROUPS "cgroup.procs", "0") == 0);
	/* See what Documentation/admin-guide/velo.rst says of cgroups that go with limits. */
	CHECK(file_write(CGROUP "rdma.max", "velo0 hca_handle=max hca_object=max") == 0);
	CHECK(rmdir(CGROUP) == 0);
}

/* --- pictures --------------------------------------------------------------------------------- */

#define PICTURES "/sys/class/devcoredump"
#define PICTURE SYSFS "device/devcoredump/data"

/* Also a memory that nobody may see is in no picture. */
static void a_reset_leaves_a_picture_of_the_card(void)
{
	static char picture[1 << 18];
	struct velo_card_take take;
	char wanted[64];
	size_t length = 0;
	ssize_t len = 1;
	uint64_t *secret;
	uint32_t page;
	int context, file;

	(void)file_write(PICTURE, "1"); /* An earlier one goes. */
	context = context_open(&take);
	secret = pages(1);
	memcpy(secret, "velosecret", 10);
	CHECK(context_enter(context, secret, PAGE, 7, &page) == 0);
	CHECK(sysfs_write("device/reset", "1") == 0);
	file = open(PICTURE, O_RDONLY | O_CLOEXEC);
	while (len > 0 && length < sizeof(picture) - 1) {
		len = read(file, picture + length, sizeof(picture) - 1 - length);
		length += len > 0 ? (size_t)len : 0;
	}
	close(file);
	CHECK(!strncmp(picture, "card velo0 why=reset", 20));
	snprintf(wanted, sizeof(wanted), "\ncontext number=%u user=0 ", take.number);
	CHECK(strstr(picture, wanted));
	CHECK(strstr(picture, " regions=1 pages=1\n") && strstr(picture, "\ncounter sent "));
	CHECK(!memmem(picture, length, "velosecret", 10));
	CHECK(file_write(PICTURE, "1") == 0);
	close(context);
}

int main(int argc, char **argv)
{
	/* Somebody else may have mounted it, and with the controllers of version 1 it has none. */
	const bool has_cgroups = !mount("none", CGROUPS, "cgroup2", 0, NULL) || errno == EBUSY;
	const bool has_controller = has_cgroups &&
				    !system("grep -qw rdma " CGROUPS "cgroup.controllers");
	/* Kernels that lack one of these are told in driver/README.md. */
	const bool can_sleep = !access("/sys/power/state", W_OK);
	/* The injector is a module, or a part of the kernel. */
	const bool has_injector = (!access(INJECTOR, W_OK) || !system("modprobe -q aer_inject")) &&
				  !access(INJECTOR, W_OK);
	const struct test tests[] = {
		{ "number_is_kept_while_memory_is_entered_for_it",
		  number_is_kept_while_memory_is_entered_for_it },
		{ "number_is_kept_while_somebody_stores_to_it",
		  number_is_kept_while_somebody_stores_to_it },
		{ "number_is_kept_while_a_grant_names_it", number_is_kept_while_a_grant_names_it },
		{ "number_is_kept_while_the_card_has_links", number_is_kept_while_the_card_has_links },
		{ "root_gives_up_numbers", root_gives_up_numbers },
		{ "remote_memory_wants_a_grant", remote_memory_wants_a_grant },
		{ "a_part_of_a_descriptor_is_none",
		  maps_pages() ? a_part_of_a_descriptor_is_none : NULL },
		{ "who_never_reads_its_ring_stops_nobody", who_never_reads_its_ring_stops_nobody },
		{ "who_never_reads_its_queue_stops_nobody", who_never_reads_its_queue_stops_nobody },
		{ "a_full_ring_holds_up_others_once", a_full_ring_holds_up_others_once },
		/* Where the kernel stores all lines, nobody overruns any. */
		{ "who_overruns_its_lines_loses_its_own_alone",
		  maps_pages() ? who_overruns_its_lines_loses_its_own_alone : NULL },
		{ "who_has_no_lines_takes_none", who_has_no_lines_takes_none },
		{ "a_link_that_is_down_stops_nobody", a_link_that_is_down_stops_nobody },
		{ "a_node_that_never_answers_stops_nobody", a_node_that_never_answers_stops_nobody },
		{ "a_node_that_does_not_answer_holds_up_others_once",
		  a_node_that_does_not_answer_holds_up_others_once },
		{ "who_waits_for_an_answer_that_never_comes_is_woken",
		  who_waits_for_an_answer_that_never_comes_is_woken },
		{ "a_refused_add_is_never_done", a_refused_add_is_never_done },
		{ "memory_is_reached_where_it_was_entered_and_not_beside",
		  memory_is_reached_where_it_was_entered_and_not_beside },
		{ "interrupts_have_a_limit", interrupts_have_a_limit },
		{ "reset_is_an_error_and_no_signal", reset_is_an_error_and_no_signal },
		{ "a_bad_store_is_no_failure_of_the_machine", a_bad_store_is_no_failure_of_the_machine },
		{ "sleep_is_as_a_reset", can_sleep ? sleep_is_as_a_reset : NULL },
		{ "a_card_that_nobody_uses_sleeps", a_card_that_nobody_uses_sleeps },
		{ "an_error_that_is_not_fatal_ends_nothing",
		  has_injector ? an_error_that_is_not_fatal_ends_nothing : NULL },
		{ "a_fatal_error_is_as_a_reset", has_injector ? a_fatal_error_is_as_a_reset : NULL },
		{ "a_cgroup_has_no_more_than_it_may",
		  has_controller ? a_cgroup_has_no_more_than_it_may : NULL },
		{ "a_reset_leaves_a_picture_of_the_card",
		  access(PICTURES, F_OK) ? NULL : a_reset_leaves_a_picture_of_the_card },
	};
	const long links = sysfs_number("links");
	char text[32];
	int failed;

	told = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED || chmod(DEVICE, 0666) || sysfs_write("links", "0") ||
	    sysfs_write("release", "all"))
		return 1;
	snprintf(patience, sizeof(patience), "%ld", sysfs_number("ring_patience"));
	clock_open();
	failed = tests_run(tests, sizeof(tests) / sizeof(*tests), argc > 1 ? argv[1] : NULL);
	snprintf(text, sizeof(text), "%ld", links);
	return sysfs_write("links", text) || chmod(DEVICE, 0600) || failed;
}
