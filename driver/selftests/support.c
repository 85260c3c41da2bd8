// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "support.h"

unsigned int checks, failures;

bool check(bool holds, const char *what, const char *file, int line)
{
	checks++;
	if (holds)
		return true;
	failures++;
	printf("# FAILED %s:%d: %s (errno %s)\n", file, line, what, strerror(errno));
	return false;
}

bool check_fails(long result, int error, const char *what, const char *file, int line)
{
	int got = errno;

	checks++;
	if (result == -1 && got == error)
		return true;
	failures++;
	printf("# FAILED %s:%d: %s: %s, and not %s\n", file, line, what,
	       result == -1 ? strerror(got) : "no error", strerror(error));
	return false;
}

ssize_t file_read(const char *path, char *text, size_t size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = -1;

	if (file >= 0) {
		len = read(file, text, size - 1);
		close(file);
	}
	text[len > 0 ? len : 0] = '\0';
	return len;
}

static long number_in(const char *folder, const char *name)
{
	char path[256], text[64];

	snprintf(path, sizeof(path), "%s%s", folder, name);
	return file_read(path, text, sizeof(text)) > 0 ? strtol(text, NULL, 0) : -1;
}

long sysfs_number(const char *name)
{
	return number_in(SYSFS, name);
}

long parameter_number(const char *name)
{
	return number_in("/sys/module/velo/parameters/", name);
}

int file_write(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC), error = 0;

	if (file < 0)
		return errno;
	if (write(file, text, strlen(text)) != (ssize_t)strlen(text))
		error = errno;
	close(file);
	return error;
}

int sysfs_write(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), SYSFS "%s", name);
	return file_write(path, text);
}

/* The card's place in the network: its files, in the order in which they are to be written. */
#define PLACE_FILES 3
static const char *const place_files[PLACE_FILES] = { "node", "routes", "links" };
/* What card_pull_out() has read from each of these files. */
static char place_texts[PLACE_FILES][4096];

void card_pull_out(void)
{
	char path[256];
	unsigned int i;

	for (i = 0; i < PLACE_FILES; i++) {
		snprintf(path, sizeof(path), SYSFS "%s", place_files[i]);
		CHECK(file_read(path, place_texts[i], sizeof(place_texts[i])) > 0);
	}
	CHECK(sysfs_write("device/remove", "1") == 0);
}

void card_plug_in(void)
{
	unsigned int i;

	CHECK(file_write("/sys/bus/pci/rescan", "1") == 0);
	for (i = 0; i < PLACE_FILES; i++)
		CHECK(sysfs_write(place_files[i], place_texts[i]) == 0);
}

int context_take(int file, uint32_t number, struct velo_card_take *take)
{
	*take = (struct velo_card_take){
		.size = sizeof(*take),
		.number = number,
		.store_lines = 1,
	};
	return ioctl(file, VELO_CARD_TAKE, take);
}

int context_open(struct velo_card_take *take)
{
	int file = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (file >= 0 && context_take(file, VELO_CARD_ANY, take) == 0)
		return file;
	printf("# FAILED: no context: %s\n", strerror(errno));
	exit(1);
}

void *context_map(int file, unsigned int kind, uint64_t rest, size_t len_bytes, int protection)
{
	return mmap(NULL, len_bytes, protection, MAP_SHARED, file,
		    (off_t)VELO_CARD_OFFSET(kind, rest));
}

int context_enter(int file, void *at, size_t len_bytes, uint32_t rights, uint32_t *first_page)
{
	struct velo_card_enter enter = {
		.size = sizeof(enter),
		.address = (uintptr_t)at,
		.len_bytes = len_bytes,
		.rights = rights,
	};
	int result = ioctl(file, VELO_CARD_ENTER, &enter);

	*first_page = enter.first_page;
	return result;
}

int context_withdraw(int file, uint32_t first_page)
{
	struct velo_card_withdraw withdraw = {
		.size = sizeof(withdraw),
		.first_page = first_page,
	};

	return ioctl(file, VELO_CARD_WITHDRAW, &withdraw);
}

int context_arm(int file, uint16_t ring_head, uint16_t queue_head)
{
	struct velo_card_arm arm = {
		.size = sizeof(arm),
		.ring_head = ring_head,
		.queue_head = queue_head,
	};

	return ioctl(file, VELO_CARD_ARM, &arm) ? -1 : !arm.ready;
}

/* --- signals ---------------------------------------------------------------------------------- */

static sigjmp_buf after_fault;

static void fault(int number)
{
	siglongjmp(after_fault, number);
}

/* The signal that a store to a page ends with; 0: none. */
int store_signal(volatile uint64_t *at)
{
	struct sigaction catch = { .sa_handler = fault }, bus, segment;
	int number;

	sigaction(SIGBUS, &catch, &bus);
	sigaction(SIGSEGV, &catch, &segment);
	number = sigsetjmp(after_fault, 1);
	if (number == 0)
		*at = 0;
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segment, NULL);
	return number;
}

/* --- memory, other users ---------------------------------------------------------------------- */

void *pages(unsigned int count)
{
	void *at = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

size_t system_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

bool maps_pages(void)
{
	return system_page() == PAGE;
}

struct user user_start(unsigned int number, void (*test)(void))
{
	unsigned int before = failures;
	int tested[2], until[2];
	struct user user;
	char byte;

	CHECK(pipe2(tested, O_CLOEXEC) == 0 && pipe2(until, O_CLOEXEC) == 0);
	fflush(stdout);
	user = (struct user){ fork(), until[1] };
	if (user.pid == 0) {
		close(tested[0]);
		close(until[1]);
		CHECK(setuid(number) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		test();
		fflush(stdout);
		close(tested[1]);
		CHECK(read(until[0], &byte, 1) == 1);
		_exit(failures != before);
	}
	close(tested[1]);
	close(until[0]);
	CHECK(user.pid > 0 && read(tested[0], &byte, 1) == 0);
	close(tested[0]);
	return user;
}

void user_end(struct user user)
{
	int status;

	CHECK(write(user.until, "", 1) == 1);
	close(user.until);
	CHECK(waitpid(user.pid, &status, 0) == user.pid && status == 0);
}

/* --- messages --------------------------------------------------------------------------------- */

/* A page of the card. False: it cannot be mapped, though it should. */
static bool port_map_page(struct port *port, unsigned int kind, uint64_t rest,
			  volatile uint64_t **page)
{
	if (!maps_pages())
		return true;
	*page = context_map(port->file, kind, rest, PAGE, PROT_WRITE);
	/* For descriptors not every user has the grant. */
	return *page != MAP_FAILED || (kind == VELO_CARD_DESCRIPTORS && errno == EPERM);
}

/* Without a target: to itself. */
static bool port_map(struct port *port, uint64_t target)
{
	int file = port->file;

	if (target == PORT_ITSELF)
		target = target_page(port->take.node, port->take.number);
	port->target_page = target;
	port->ring = context_map(file, VELO_CARD_RING, 0, port->take.ring_slots * 64ul, PROT_READ);
	port->queue = context_map(file, VELO_CARD_QUEUE, 0, port->take.queue_entries * 16ul,
				  PROT_READ | PROT_WRITE);
	return port->ring != MAP_FAILED && port->queue != MAP_FAILED &&
	       port_map_page(port, VELO_CARD_RING_POINTER, 0, &port->ring_pointer) &&
	       port_map_page(port, VELO_CARD_QUEUE_POINTER, 0, &port->queue_pointer) &&
	       port_map_page(port, VELO_CARD_DESCRIPTORS, 0, &port->descriptors) &&
	       port_map_page(port, VELO_CARD_TARGETS, target, &port->target);
}

bool port_try(struct port *port, uint32_t number, uint32_t lines, uint64_t target)
{
	int error;

	*port = (struct port){
		.file = open(DEVICE, O_RDWR | O_CLOEXEC),
		.take = { .size = sizeof(port->take), .number = number, .store_lines = lines },
		.ring = MAP_FAILED,
		.queue = MAP_FAILED,
		.ring_pointer = MAP_FAILED,
		.queue_pointer = MAP_FAILED,
		.descriptors = MAP_FAILED,
		.target = MAP_FAILED,
	};
	if (port->file < 0)
		return false;
	if (ioctl(port->file, VELO_CARD_TAKE, &port->take)) {
		error = errno;
		close(port->file);
		errno = error;
		return false;
	}
	if (port_map(port, target))
		return true;
	error = errno;
	port_close(port);
	errno = error;
	return false;
}

void port_open_at(struct port *port, uint32_t number, uint32_t to_context)
{
	uint64_t target = PORT_ITSELF;

	if (to_context != VELO_CARD_ANY)
		target = target_page((uint32_t)sysfs_number("node"), to_context);
	if (port_try(port, number, PORT_LINES, target))
		return;
	printf("# FAILED: no context: %s\n", strerror(errno));
	exit(1);
}

void port_open(struct port *port, uint32_t to_context)
{
	port_open_at(port, VELO_CARD_ANY, to_context);
}

/* What could not be mapped is MAP_FAILED. */
static void port_unmap(const volatile void *at, size_t len_bytes)
{
	if (at != MAP_FAILED)
		munmap((void *)at, len_bytes);
}

void port_close(struct port *port)
{
	port_unmap(port->ring, port->take.ring_slots * 64ul);
	port_unmap(port->queue, port->take.queue_entries * 16ul);
	port_unmap(port->ring_pointer, PAGE);
	port_unmap(port->queue_pointer, PAGE);
	port_unmap(port->descriptors, PAGE);
	port_unmap(port->target, PAGE);
	close(port->file);
}

void pointers_unmap(struct port *port)
{
	port_unmap(port->ring_pointer, PAGE);
	port_unmap(port->queue_pointer, PAGE);
	port->ring_pointer = port->queue_pointer = MAP_FAILED;
}

bool write_patiently(struct port *port, const uint64_t *words, size_t len_bytes, off_t offset)
{
	ssize_t done;

	do
		done = pwrite(port->file, words, len_bytes, offset);
	while (done < 0 && errno == EAGAIN);
	return done == (ssize_t)len_bytes;
}

uint32_t dropped(struct port *port)
{
	uint64_t word = 0;

	CHECK(pread(port->file, &word, 8, (off_t)VELO_CARD_OFFSET(VELO_CARD_SHARE, 0)) == 8);
	CHECK(velo_pcie_share_lines(word) == port->take.store_lines);
	return velo_pcie_share_dropped(word);
}

bool try_until_taken(const struct port *port)
{
	const off_t offset = (off_t)VELO_CARD_OFFSET(VELO_CARD_STORES, 0);
	uint64_t word;
	uint32_t accepted;

	if (pread(port->file, &word, sizeof(word), offset) != sizeof(word))
		return false;
	accepted = velo_pcie_stores_accepted(word);
	while ((int32_t)(velo_pcie_stores_taken(word) - accepted) < 0)
		if (pread(port->file, &word, sizeof(word), offset) != sizeof(word))
			return false;
	return true;
}

void wait_until_taken(const struct port *port)
{
	CHECK(try_until_taken(port));
}

/* The processor sends the words that it has combined before it stores or loads anything later. */
static void store_fence(void)
{
#ifdef __x86_64__
	__builtin_ia32_sfence();
#elif defined(__aarch64__)
	asm volatile("dsb st" ::: "memory");
#else
#error "Which instruction waits for write-combining stores here?"
#endif
}

void store(volatile uint64_t *at, const uint64_t *line, unsigned int words)
{
	unsigned int i;

	for (i = 0; i < words; i++)
		at[i] = line[i];
	store_fence();
}

void send_line(struct port *port, unsigned int place, const uint64_t *line, unsigned int words)
{
	uint64_t at = port->target_page | place * VELO_LINE_BYTES;

	if (port->target != MAP_FAILED)
		store(port->target + place * (VELO_LINE_BYTES / 8), line, words);
	else
		write_patiently(port, line, words * 8,
				(off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS, at));
}

static void read_to(struct port *port, volatile uint64_t *page, unsigned int kind, uint64_t head)
{
	if (page != MAP_FAILED)
		*page = head;
	else
		(void)!pwrite(port->file, &head, sizeof(head), (off_t)VELO_CARD_OFFSET(kind, 0));
}

void ring_read_to(struct port *port, uint64_t head)
{
	read_to(port, port->ring_pointer, VELO_CARD_RING_POINTER, head);
}

void queue_read_to(struct port *port, uint64_t head)
{
	read_to(port, port->queue_pointer, VELO_CARD_QUEUE_POINTER, head);
}

void make_line(uint64_t *line, uint8_t tag, unsigned int words)
{
	unsigned int i;

	line[0] = velo_header_pack(0, tag, (uint16_t)(8 * (words - 1)), 0, 0);
	for (i = 1; i < words; i++)
		line[i] = 0x0101010101010101ull * i + tag;
}

/* The next slot of the ring, with a deadline far beyond what a simulated card takes. */
static bool next_slot(struct port *port, uint64_t *slot)
{
	const volatile uint64_t *at = port->ring + port->head % port->take.ring_slots * 8;
	struct pollfd poll_file = { port->file, POLLIN, 0 };
	int armed = context_arm(port->file, port->head, port->queue_head);
	unsigned int i;

	if (!CHECK(armed >= 0))
		return false;
	if (armed && !CHECK(poll(&poll_file, 1, 60000) == 1 && poll_file.revents == POLLIN))
		return false;
	for (i = 0; i < 8; i++)
		slot[i] = at[i];
	CHECK(velo_header_valid(slot[0]) && velo_header_seq(slot[0]) == port->head);
	port->head++;
	ring_read_to(port, port->head);
	return true;
}

/* The next line; one that the host has split comes in several slots. */
bool next_line(struct port *port, uint64_t *line, uint32_t *sender)
{
	unsigned int have = 0, words = 1, first, count;
	uint64_t slot[8];

	do {
		if (!next_slot(port, slot))
			return false;
		*sender = velo_header_source(slot[0]);
		count = velo_header_len(slot[0]) / 8;
		if (velo_header_reserved(slot[0]) != VELO_SLOT_FRAGMENT) {
			memcpy(line, slot, sizeof(slot));
			return CHECK(have == 0);
		}
		first = velo_fragment_tag_offset(velo_header_tag(slot[0]));
		words = velo_fragment_tag_words(velo_header_tag(slot[0])) + 1u;
		if (!CHECK(first + count <= words))
			return false;
		memcpy(line + first, slot + 1, count * 8);
		have += count;
	} while (have < words);
	return true;
}

bool receive(struct port *port, uint8_t tag, unsigned int words, uint32_t from)
{
	uint64_t line[8], wanted[8];
	uint32_t sender;

	if (!next_line(port, line, &sender))
		return false;
	make_line(wanted, tag, words);
	CHECK(velo_header_tag(line[0]) == tag && velo_header_len(line[0]) == 8 * (words - 1));
	CHECK(sender == (port->take.node << 8 | from));
	return CHECK(memcmp(line + 1, wanted + 1, (words - 1) * 8) == 0);
}

/* --- remote memory ---------------------------------------------------------------------------- */

/* The next notification; zero: none came. */
bool notified(struct port *port, uint64_t *words)
{
	volatile uint64_t *entry = port->queue + port->queue_head % port->take.queue_entries * 2;
	struct pollfd poll_file = { port->file, POLLIN, 0 };
	int armed = context_arm(port->file, port->head, port->queue_head);

	if (!CHECK(armed >= 0))
		return false;
	if (armed && !CHECK(poll(&poll_file, 1, 60000) == 1))
		return false;
	words[0] = entry[0];
	words[1] = entry[1];
	entry[0] = 0;
	port->queue_head++;
	queue_read_to(port, port->queue_head);
	return CHECK(velo_rma_notification_valid(words[0]));
}

/* The notifications of a descriptor that came in parts: one for each part, or fewer. */
bool was_split(struct port *port, const uint64_t *answer)
{
	volatile uint64_t *entry;

	if (velo_rma_notification_error(answer[0]) != VELO_ERROR_OVERSIZE)
		return false;
	wait_until_taken(port);
	usleep(50000);
	entry = port->queue + port->queue_head % port->take.queue_entries * 2;
	while (entry[0]) {
		entry[0] = 0;
		port->queue_head++;
		entry = port->queue + port->queue_head % port->take.queue_entries * 2;
	}
	queue_read_to(port, port->queue_head);
	return true;
}

/* Posts a descriptor. Returns the error that it ended with, or -1. */
int post(struct port *port, const uint64_t *words)
{
	const size_t len_bytes = VELO_RMA_DESCRIPTOR_WORDS * sizeof(*words);
	uint64_t answer[2];

	/* By turns as a process does it, if it may, and by the kernel. */
	do {
		if (port->queue_head % 2 && port->descriptors != MAP_FAILED)
			store(port->descriptors, words, VELO_RMA_DESCRIPTOR_WORDS);
		else
			CHECK(write_patiently(port, words, len_bytes,
					      (off_t)VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0)));
		if (!notified(port, answer))
			return -1;
	} while (was_split(port, answer));
	CHECK(velo_rma_notification_cookie(answer[0]) == 17);
	return velo_rma_notification_error(answer[0]);
}

int put_to(struct port *port, uint32_t context, uint32_t from_page, uint32_t to_page,
	   uint32_t len_bytes)
{
	const uint64_t words[VELO_RMA_DESCRIPTOR_WORDS] = {
		velo_rma_descriptor_word0_pack(VELO_RMA_OP_PUT, VELO_RMA_PLACE_REQUESTER, 0,
					       (uint8_t)port->take.node,
					       (uint8_t)context, 17, len_bytes),
		velo_registered_address_pack(0, from_page),
		velo_registered_address_pack(0, to_page),
	};

	return post(port, words);
}

int put(struct port *port, uint32_t from_page, uint32_t to_page, uint32_t len_bytes)
{
	return put_to(port, port->take.number, from_page, to_page, len_bytes);
}

/* Notifies another context of the card. */
int notify(struct port *port, uint32_t context)
{
	const unsigned int places = VELO_RMA_PLACE_REQUESTER | VELO_RMA_PLACE_COMPLETER;
	const uint64_t words[VELO_RMA_DESCRIPTOR_WORDS] = {
		velo_rma_descriptor_word0_pack(VELO_RMA_OP_NOTIFY, places, 0,
					       (uint8_t)port->take.node, (uint8_t)context, 17, 0),
	};

	return post(port, words);
}

/* --- a program -------------------------------------------------------------------------------- */

int tests_run(const struct test *tests, unsigned int count, const char *only)
{
	bool is_there = !only;
	unsigned int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..%u\n", count);
	if (!maps_pages())
		printf("# Pages of the system have %zu bytes, so none of the card is mapped\n",
		       system_page());
	for (i = 0; i < count; i++) {
		unsigned int before = failures;

		is_there |= only && !strcmp(only, tests[i].name);
		if (!tests[i].run || (only && strcmp(only, tests[i].name))) {
			printf("ok %u %s # SKIP %s\n", i + 1, tests[i].name,
			       tests[i].run ? "not asked for" : "cannot be had here");
			continue;
		}
		tests[i].run();
		CHECK(sysfs_number("contexts") == 0 && sysfs_number("pages") == 0);
		printf("%s %u %s\n", failures == before ? "ok" : "not ok", i + 1, tests[i].name);
	}
	if (!is_there)
		printf("Bail out! There is no test %s\n", only);
	printf("# %u checks, %u failed\n", checks, failures);
	return failures || !is_there;
}

__thread uint64_t random_state;

uint64_t random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1dull >> 8;
}

uint64_t below(uint64_t limit)
{
	return random_number() % limit;
}

/* The vendor's capability that a simulated card shows its cycle by (sim/card/README.md). */
#define PCI_EXTENDED 0x100
#define PCI_VENDOR_SPECIFIC 0x0b
#define CYCLE_ID 0xc1c

bool clock_is_the_card;
static int config = -1;
static off_t cycle_at;

static uint32_t config_word(off_t at)
{
	uint32_t word = 0;

	return pread(config, &word, 4, at) == 4 ? word : 0;
}

/* The children of root, which have the file, may read so far, too. */
void clock_open(void)
{
	off_t at = PCI_EXTENDED;

	config = open(SYSFS "device/config", O_RDONLY | O_CLOEXEC);
	while (at) {
		uint32_t head = config_word(at);

		if ((head & 0xffff) == PCI_VENDOR_SPECIFIC &&
		    (config_word(at + 4) & 0xffff) == CYCLE_ID)
			cycle_at = at + 8;
		at = head >> 20;
	}
	clock_is_the_card = cycle_at;
}

uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint32_t cycle(void)
{
	if (cycle_at)
		return config_word(cycle_at);
	return (uint32_t)(now_ms() * 1000 * CARD_MHZ);
}
