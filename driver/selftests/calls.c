// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Every call to the driver, and every error that it names. Run by root in a guest with a card.
 *
 *	calls [--plain | NAME]	all, or one of them
 *
 * --plain: the card is plain memory, so nothing comes in, and messages are not tried.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support.h"

/* Runs in a process of its own; its checks count here, too. */
static void in_child(void (*test)(void))
{
	unsigned int before = failures;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		test();
		fflush(stdout);
		_exit(failures != before);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/* --- contexts --------------------------------------------------------------------------------- */

static bool fdinfo_has(int file, const char *wanted)
{
	char path[64], text[512] = "";
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file);
	info = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(read(info, text, sizeof(text) - 1) > 0);
	close(info);
	return strstr(text, wanted);
}

static void take(void)
{
	struct velo_card_take first, second;
	int file = open(DEVICE, O_RDWR | O_CLOEXEC), other = open(DEVICE, O_RDWR | O_CLOEXEC);
	uint64_t word;

	CHECK(file >= 0 && other >= 0);
	CHECK_FAILS(ioctl(file, VELO_CARD_TAKE, NULL), EFAULT);
	CHECK_FAILS(context_take(file, 256, &first), EINVAL);
	CHECK_FAILS(ioctl(file, VELO_CARD_ARM, &word), EBADFD);
	CHECK_FAILS(ioctl(file, VELO_CARD_ENTER, &word), EBADFD);
	CHECK_FAILS(ioctl(file, VELO_CARD_WITHDRAW, &word), EBADFD);
	CHECK_FAILS(ioctl(file, 0x12345678, NULL), ENOTTY);
	CHECK_FAILS((long)context_map(file, VELO_CARD_RING, 0, PAGE, PROT_READ), EBADFD);
	CHECK_FAILS(pread(file, &word, 8, (off_t)VELO_CARD_OFFSET(VELO_CARD_STORES, 0)), EBADFD);

	CHECK(context_take(file, 7, &first) == 0 && first.number == 7);
	CHECK(first.node == (uint32_t)sysfs_number("node"));
	CHECK(first.ring_slots >= 64 && (first.ring_slots & (first.ring_slots - 1)) == 0);
	CHECK(first.queue_entries >= 256);
	CHECK(first.store_lines == maps_pages());
	CHECK(first.ring_layout == VELO_CARD_RING_LAYOUT &&
	      first.queue_layout == VELO_CARD_QUEUE_LAYOUT &&
	      first.descriptor_layout == VELO_CARD_DESCRIPTOR_LAYOUT &&
	      first.stores_layout == VELO_CARD_STORES_LAYOUT);
	CHECK(fdinfo_has(file, maps_pages() ? "velo-number:\t7\nvelo-lines:\t1\n" :
					      "velo-number:\t7\nvelo-lines:\t0\n"));
	CHECK(fdinfo_has(file, "velo-regions:\t0\nvelo-pages:\t0\n"));
	CHECK(!fdinfo_has(other, "velo-"));
	CHECK_FAILS(context_take(file, VELO_CARD_ANY, &second), EEXIST);
	CHECK_FAILS(context_take(other, 7, &second), EBUSY);
	CHECK(sysfs_number("contexts") == 1);
	CHECK_FAILS(ioctl(file, 0x12345678, NULL), ENOTTY);
	CHECK(sysfs_write("node", "3") == EBUSY);
	close(file);
	CHECK(sysfs_number("contexts") == 0);
	CHECK(context_take(other, 7, &second) == 0 && second.opened == first.opened + 1);
	close(other);
}

/*
 * A struct of another size, in front of a page that cannot be accessed. The driver's may have
 * grown, and then the first version's is smaller.
 */
static void sizes_of(int file, unsigned long call, const void *good, uint32_t first_bytes,
		     uint32_t bytes)
{
	const size_t page = system_page();
	char *end = pages(3 * page / PAGE) + 2 * page, *at;
	uint32_t *size;

	CHECK(mprotect(end, page, PROT_NONE) == 0);
	at = end - bytes;
	memcpy(at, good, bytes);
	size = (uint32_t *)at;
	*size = 0;
	CHECK_FAILS(ioctl(file, call, at), EINVAL);
	*size = first_bytes - 1;
	CHECK_FAILS(ioctl(file, call, at), EINVAL);
	*size = page + 1;
	CHECK_FAILS(ioctl(file, call, at), E2BIG);
	*size = bytes + 1;
	CHECK_FAILS(ioctl(file, call, at), EFAULT);
	/* Flags that nobody knows. */
	*size = bytes;
	size[1] |= 0x80000000;
	CHECK_FAILS(ioctl(file, call, at), EINVAL);
	/* What the driver's struct lacks. */
	at = end - page;
	memset(at, 0, page);
	memcpy(at, good, bytes);
	size = (uint32_t *)at;
	*size = page;
	end[-1] = 1;
	CHECK_FAILS(ioctl(file, call, at), E2BIG);
	end[-1] = 0;
	at[bytes] = 1;
	*size = bytes + 1;
	CHECK_FAILS(ioctl(file, call, at), E2BIG);
	/* It is 0, and stays so; what is behind the struct stays as it is. */
	at[bytes] = 0;
	at[bytes + 8] = 1;
	*size = bytes + 8;
	CHECK(ioctl(file, call, at) == 0 && at[bytes] == 0 && at[bytes + 8] == 1);
	CHECK(*size == bytes + 8);
	munmap(end - 2 * page, 3 * page);
}

#define SIZES_OF(file, call, good, last)						\
	sizes_of(file, call, good, offsetof(typeof(*(good)), last) + sizeof((good)->last),	\
		 sizeof(*(good)))

/* Structs of processes that were built with an older or newer header. */
static void sizes(void)
{
	int file = open(DEVICE, O_RDWR | O_CLOEXEC);
	struct velo_card_take take = { .size = sizeof(take), .number = VELO_CARD_ANY };
	struct velo_card_enter enter = {
		.size = sizeof(enter),
		.address = (uintptr_t)pages(1),
		.len_bytes = PAGE,
		.rights = VELO_CARD_READ,
	};
	struct velo_card_withdraw withdraw = { .size = sizeof(withdraw) };
	struct velo_card_arm arm = { .size = sizeof(arm) };

	SIZES_OF(file, VELO_CARD_TAKE, &take, stores_layout);
	SIZES_OF(file, VELO_CARD_ARM, &arm, ready);
	SIZES_OF(file, VELO_CARD_ENTER, &enter, reserved);
	CHECK(sysfs_number("pages") == 1);
	CHECK(ioctl(file, VELO_CARD_ENTER, &enter) == 0);
	CHECK(sysfs_number("pages") == 2);
	withdraw.first_page = enter.first_page;
	SIZES_OF(file, VELO_CARD_WITHDRAW, &withdraw, first_page);
	CHECK(sysfs_number("pages") == 1);
	close(file);
}

static void take_all(void)
{
	static int files[256];
	struct velo_card_take take;
	int more, count = 0;
	long lines = sysfs_number("lines_free");

	while (count < 256) {
		files[count] = open(DEVICE, O_RDWR | O_CLOEXEC);
		if (files[count] < 0 || context_take(files[count], VELO_CARD_ANY, &take))
			break;
		CHECK(take.store_lines == (maps_pages() && count < lines));
		count++;
	}
	if (count < 256)
		close(files[count]);
	CHECK(count == sysfs_number("contexts_max") && sysfs_number("contexts") == count);
	CHECK(count >= 64);
	CHECK(sysfs_number("lines_free") == (maps_pages() ? 0 : lines));
	more = open(DEVICE, O_RDWR | O_CLOEXEC);
	CHECK_FAILS(context_take(more, VELO_CARD_ANY, &take), ENOSPC);
	close(more);
	while (count--)
		close(files[count]);
	CHECK(sysfs_number("contexts") == 0 && sysfs_number("lines_free") == lines);
}

/* --- mappings --------------------------------------------------------------------------------- */

/* Each kind and target is a page of its own. */
static void pages_are_mapped(int file, uint64_t own)
{
	unsigned int kind;
	uint64_t *page;

	for (kind = VELO_CARD_RING_POINTER; kind <= VELO_CARD_DESCRIPTORS; kind++) {
		page = context_map(file, kind, 0, PAGE, PROT_WRITE);
		CHECK(page != MAP_FAILED);
		if (kind != VELO_CARD_DESCRIPTORS)
			CHECK(store_signal(page) == 0);
		munmap(page, PAGE);
		CHECK_FAILS((long)context_map(file, kind, PAGE, PAGE, PROT_WRITE), EINVAL);
		CHECK_FAILS((long)context_map(file, kind, 0, 2 * PAGE, PROT_WRITE), EINVAL);
	}
	page = context_map(file, VELO_CARD_TARGETS, own, PAGE, PROT_WRITE);
	CHECK(page != MAP_FAILED);
	CHECK_FAILS((long)mremap(page, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EFAULT);
	CHECK_FAILS((long)context_map(file, VELO_CARD_TARGETS, 1ul << 28, PAGE, PROT_WRITE), EINVAL);
	munmap(page, PAGE);
}

/* A page of the system's would have those of other contexts and targets. */
static void pages_are_not_mapped(int file)
{
	unsigned int kind;

	for (kind = VELO_CARD_RING_POINTER; kind <= VELO_CARD_TARGETS; kind++) {
		CHECK_FAILS((long)context_map(file, kind, 0, PAGE, PROT_WRITE), EOPNOTSUPP);
		CHECK_FAILS((long)context_map(file, kind, system_page(), system_page(), PROT_WRITE),
			    EOPNOTSUPP);
	}
}

static void maps(void)
{
	struct velo_card_take take;
	int file = context_open(&take);
	size_t ring_bytes = take.ring_slots * 64ul, queue_bytes = take.queue_entries * 16ul;
	uint64_t own = target_page(take.node, take.number);
	const int both = PROT_READ | PROT_WRITE;
	uint64_t *ring, *queue;

	CHECK(ring_bytes % system_page() == 0 && queue_bytes % system_page() == 0);
	ring = context_map(file, VELO_CARD_RING, 0, ring_bytes, PROT_READ);
	queue = context_map(file, VELO_CARD_QUEUE, 0, queue_bytes, both);
	CHECK(ring != MAP_FAILED && queue != MAP_FAILED);
	CHECK(ring[0] == 0 && ring[ring_bytes / 8 - 1] == 0);
	CHECK(store_signal(ring) == SIGSEGV);
	CHECK_FAILS(mprotect(ring, ring_bytes, both), EACCES);
	CHECK(store_signal(queue) == 0);
	CHECK_FAILS((long)context_map(file, VELO_CARD_RING, 0, ring_bytes, both), EACCES);
	CHECK_FAILS((long)context_map(file, VELO_CARD_RING, 0, ring_bytes + PAGE, PROT_READ), EINVAL);
	CHECK_FAILS((long)context_map(file, VELO_CARD_RING, ring_bytes, PAGE, PROT_READ), EINVAL);
	CHECK_FAILS((long)context_map(file, VELO_CARD_QUEUE, PAGE, queue_bytes, both), EINVAL);
	CHECK_FAILS((long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0), EINVAL);

	if (maps_pages())
		pages_are_mapped(file, own);
	else
		pages_are_not_mapped(file);
	CHECK_FAILS((long)context_map(file, VELO_CARD_STORES, 0, PAGE, PROT_READ), EINVAL);
	CHECK_FAILS((long)context_map(file, 99, 0, PAGE, PROT_READ), EINVAL);
	close(file);
	/* Mappings keep the context. */
	CHECK(sysfs_number("contexts") == 1 && ring[0] == 0);
	munmap(ring, ring_bytes);
	munmap(queue, queue_bytes);
	CHECK(sysfs_number("contexts") == 0);
}

/* Whether a line may be stored to a target, which stores none. */
static ssize_t may_store(int file, uint64_t target)
{
	return pwrite(file, NULL, 0, (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS, target));
}

static void grants_of_pages(int file, const struct velo_card_take *take)
{
	uint64_t *page;
	char own[32];

	CHECK(sysfs_write("grants", "none\n") == 0);
	CHECK_FAILS((long)context_map(file, VELO_CARD_TARGETS, 0, PAGE, PROT_WRITE), EPERM);
	CHECK(sysfs_write("grants", "none\n0 2-3 4-5\n1234 0-255 0-255\n") == 0);
	CHECK_FAILS((long)context_map(file, VELO_CARD_TARGETS, target_page(2, 3), PAGE, PROT_WRITE),
		    EPERM);
	CHECK_FAILS((long)context_map(file, VELO_CARD_TARGETS, target_page(2, 5), 2 * PAGE,
				      PROT_WRITE), EPERM);
	CHECK_FAILS((long)context_map(file, VELO_CARD_TARGETS, target_page(4, 4), PAGE, PROT_WRITE),
		    EPERM);
	CHECK_FAILS((long)context_map(file, VELO_CARD_DESCRIPTORS, 0, PAGE, PROT_WRITE), EPERM);
	page = context_map(file, VELO_CARD_TARGETS, target_page(3, 4), 2 * PAGE, PROT_WRITE);
	CHECK(page != MAP_FAILED);
	munmap(page, 2 * PAGE);

	/* A mapped page cannot be reached once its grant is gone. Zero is a message. */
	snprintf(own, sizeof(own), "none\n0 %u %u\n", take->node, take->number);
	CHECK(sysfs_write("grants", own) == 0);
	page = context_map(file, VELO_CARD_TARGETS, target_page(take->node, take->number), PAGE,
			   PROT_WRITE);
	CHECK(page != MAP_FAILED && store_signal(page) == 0);
	CHECK(sysfs_write("grants", "none") == 0);
	CHECK(store_signal(page) == SIGBUS);
	CHECK(sysfs_write("grants", "none all") == 0);
	CHECK(store_signal(page) == 0);
	munmap(page, PAGE);
	/* A page of descriptors goes with the grant for all. Half of one is refused. */
	page = context_map(file, VELO_CARD_DESCRIPTORS, 0, PAGE, PROT_WRITE);
	CHECK(page != MAP_FAILED && store_signal(page) == 0);
	CHECK(sysfs_write("grants", "none\n* 0-255 0-254\n* 0-255 255\n") == 0);
	CHECK(store_signal(page) == SIGBUS);
	CHECK(sysfs_write("grants", "none all") == 0);
	CHECK(store_signal(page) == 0);
	munmap(page, PAGE);
}

static void grants(void)
{
	struct velo_card_take take;
	int file = context_open(&take);
	uint64_t line[2] = { 0 };
	const char *bad[] = { "some", "*", "* 0", "* 0 300", "* 3-2 0", "0 0-1 0x", "-1 0 0", "alls" };
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(sysfs_write("grants", bad[i]) == EINVAL);
	CHECK(sysfs_write("grants", "none\n") == 0);
	CHECK_FAILS(may_store(file, 0), EPERM);
	CHECK_FAILS(pwrite(file, line, 16, (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS, 0)), EPERM);
	CHECK(sysfs_write("grants", "none\n0 2-3 4-5\n1234 * *\n") == EINVAL);
	CHECK(sysfs_write("grants", "none\n0 2-3 4-5\n1234 0-255 0-255\n") == 0);
	CHECK_FAILS(may_store(file, target_page(2, 3)), EPERM);
	CHECK_FAILS(may_store(file, target_page(4, 4)), EPERM);
	CHECK(may_store(file, target_page(3, 4)) == 0 && may_store(file, target_page(2, 5)) == 0);
	CHECK_FAILS(may_store(file, 1ul << 28), EINVAL);
	if (maps_pages())
		grants_of_pages(file, &take);
	CHECK(sysfs_write("grants", "none all") == 0);
	CHECK(may_store(file, target_page(255, 255)) == 0);
	/* It stored nothing, and so it names nobody. */
	CHECK(sysfs_number("counters/pcie_stores_dropped") == 0);
	close(file);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void memory(void)
{
	struct velo_card_take take;
	int file = context_open(&take), other = context_open(&take);
	/* The test unmaps and moves whole pages of the system; each has so many of the card's. */
	const size_t size = system_page(), each = size / PAGE;
	char *at = pages(16 * each);
	struct velo_card_enter bad;
	uint32_t page, next;
	void *code = (void *)((uintptr_t)&memory & ~(PAGE - 1));

	CHECK(context_enter(file, at, 16 * size, 3, &page) == 0);
	CHECK(sysfs_number("pages") == (long)(16 * each));
	CHECK(context_enter(file, at, PAGE, 1, &next) == 0 && next != page);
	CHECK(sysfs_number("pages") == (long)(16 * each + 1));
	CHECK_FAILS(context_withdraw(other, page), ENOENT);
	CHECK_FAILS(context_withdraw(file, page + 1), ENOENT);
	CHECK(context_withdraw(file, page) == 0 && context_withdraw(file, next) == 0);
	CHECK_FAILS(context_withdraw(file, page), ENOENT);
	CHECK(sysfs_number("pages") == 0);

	CHECK_FAILS(context_enter(file, at, 0, 3, &page), EINVAL);
	CHECK_FAILS(context_enter(file, at, 100, 3, &page), EINVAL);
	CHECK_FAILS(context_enter(file, at + 8, PAGE, 3, &page), EINVAL);
	CHECK_FAILS(context_enter(file, at, PAGE, 0, &page), EINVAL);
	CHECK_FAILS(context_enter(file, at, PAGE, 8, &page), EINVAL);
	CHECK_FAILS(context_enter(file, (void *)-PAGE, 2 * PAGE, 3, &page), EINVAL);
	CHECK_FAILS(context_enter(file, (void *)(-2 * size), PAGE, 3, &page), EFAULT);
	CHECK_FAILS(context_enter(file, at, 1ul << 40, 3, &page), ENOSPC);
	CHECK_FAILS(context_enter(file, NULL, PAGE, 3, &page), EFAULT);
	CHECK_FAILS(context_enter(file, code, PAGE, 3, &page), EFAULT);
	bad = (struct velo_card_enter){ sizeof(bad), 0, (uintptr_t)at, PAGE, 1, .reserved = 1 };
	CHECK_FAILS(ioctl(file, VELO_CARD_ENTER, &bad), EINVAL);
	bad = (struct velo_card_enter){ sizeof(bad), 0, (uintptr_t)at, PAGE, 1, .peer = 1 };
	CHECK_FAILS(ioctl(file, VELO_CARD_ENTER, &bad), EINVAL);
	CHECK_FAILS(ioctl(file, VELO_CARD_ENTER, NULL), EFAULT);
	CHECK_FAILS(ioctl(file, VELO_CARD_WITHDRAW, NULL), EFAULT);

	/* Memory that can be read, only. */
	mprotect(at, size, PROT_READ);
	CHECK_FAILS(context_enter(file, at, PAGE, 2, &page), EFAULT);
	CHECK(context_enter(file, at, PAGE, 1, &page) == 0);

	/* A part of it is unmapped, or moved: all of it is withdrawn. */
	CHECK(context_enter(file, at + 4 * size, 4 * size, 3, &next) == 0);
	CHECK(context_enter(file, at + 8 * size, 2 * size, 3, &next) == 0);
	CHECK(sysfs_number("pages") == (long)(6 * each + 1));
	munmap(at + 5 * size, size);
	CHECK(sysfs_number("pages") == (long)(2 * each + 1));
	CHECK(mremap(at + 8 * size, 2 * size, 2 * size, MREMAP_MAYMOVE | MREMAP_FIXED,
		     pages(2 * each)) != MAP_FAILED);
	CHECK(sysfs_number("pages") == 1);
	CHECK_FAILS(context_enter(file, at + 4 * size, 4 * size, 3, &page), EFAULT);
	/* The same of a part of a page of the system. */
	CHECK(context_enter(file, at + 11 * size - PAGE, PAGE, 3, &next) == 0);
	CHECK(sysfs_number("pages") == 2);
	munmap(at + 10 * size, size);
	CHECK(sysfs_number("pages") == 1);
	close(file);
	close(other);
	CHECK(sysfs_number("pages") == 0);
}

/* An ordinary user's limit. The driver pins whole pages of the system. */
static void memory_limit(void)
{
	const size_t size = system_page(), each = size / PAGE;
	struct rlimit limit = { 8 * size, 8 * size };
	struct velo_card_take take;
	int file = context_open(&take);
	char *at = pages(16 * each);
	uint32_t page, parts[8];
	unsigned int i;

	setrlimit(RLIMIT_MEMLOCK, &limit);
	CHECK(setuid(1000) == 0);
	CHECK_FAILS(context_enter(file, at, 9 * size, 3, &page), ENOMEM);
	CHECK(context_enter(file, at, 8 * size, 3, &page) == 0);
	CHECK_FAILS(context_enter(file, at + 8 * size, PAGE, 3, &page), ENOMEM);
	munmap(at + 7 * size, size); /* This gives back all eight. */
	for (i = 0; i < 8; i++) /* A part of a page counts as much as the whole one. */
		CHECK(context_enter(file, at + (8 + i) * size, PAGE, 3, &parts[i]) == 0);
	CHECK_FAILS(context_enter(file, at + 8 * size, PAGE, 3, &page), ENOMEM);
	for (i = 0; i < 8; i++)
		CHECK(context_withdraw(file, parts[i]) == 0);
	/* Across the end of one it is two. */
	CHECK(context_enter(file, at + 9 * size - PAGE, 6 * size + 2 * PAGE, 3, &page) == 0);
	CHECK_FAILS(context_enter(file, at, PAGE, 3, &parts[0]), ENOMEM);
	CHECK(context_withdraw(file, page) == 0);
	CHECK(context_enter(file, at + 8 * size, 8 * size, 3, &page) == 0);
	CHECK_FAILS(open(DEVICE, O_RDWR), EACCES);
}

static unsigned long table_entries(void)
{
	return 1ul << parameter_number("table_pages_log2");
}

/* Entries of the table that are kept for each user. */
static unsigned long table_share(void)
{
	return table_entries() / 2 / parameter_number("user_shares");
}

static void take_one(void)
{
	struct velo_card_take take;

	context_open(&take);
}

static void take_one_and_no_more(void)
{
	struct velo_card_take take;
	int file = open(DEVICE, O_RDWR), other = open(DEVICE, O_RDWR);

	CHECK(context_take(file, VELO_CARD_ANY, &take) == 0);
	CHECK_FAILS(context_take(other, VELO_CARD_ANY, &take), EDQUOT);
	close(file);
	CHECK(context_take(other, VELO_CARD_ANY, &take) == 0);
}

static void enter_a_share_and_no_more(void)
{
	struct velo_card_take take;
	int file = context_open(&take);
	const size_t share = table_share() * PAGE;
	char *at = mmap(NULL, share + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t page, more;

	CHECK(context_enter(file, at, share, 3, &page) == 0);
	CHECK_FAILS(context_enter(file, at + share, PAGE, 3, &more), EDQUOT);
	CHECK(context_withdraw(file, page) == 0);
	CHECK(context_enter(file, at + share, PAGE, 3, &more) == 0);
}

static void take_all_that_there_is(void)
{
	static int files[256];
	struct velo_card_take take;
	long most = sysfs_number("contexts_max"), others = parameter_number("user_shares") - 1;
	unsigned long entered = 0, entries = table_entries();
	unsigned int count = 0;
	uint32_t page;

	while (count < 256) {
		files[count] = open(DEVICE, O_RDWR);
		if (context_take(files[count], VELO_CARD_ANY, &take))
			break;
		count++;
	}
	CHECK(errno == EDQUOT);
	CHECK(count == most - others);

	/* Memory that is unmapped is pinned no more; its entries of the table stay taken. */
	while (entered < entries) {
		char *at = pages(64);

		if (context_enter(files[0], at, 64 * PAGE, 3, &page))
			break;
		munmap(at, 64 * PAGE);
		entered += 64;
	}
	CHECK(errno == EDQUOT && sysfs_number("pages") == 0);
	CHECK(entered == entries - others * table_share());
}

/* One user takes all that he gets: each other one has his share all the same. */
static void shares(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct user modest, greedy;
	unsigned int number;

	setrlimit(RLIMIT_MEMLOCK, &limit);
	CHECK(chmod(DEVICE, 0666) == 0);
	/* On a card with links root keeps what it took above. */
	CHECK(sysfs_write("release", "all") == 0);
	for (number = 1000; number < 1002; number++) { /* The first one gives all back. */
		modest = user_start(1999, take_one);
		greedy = user_start(number, take_all_that_there_is);
		user_end(user_start(2000, take_one_and_no_more));
		user_end(user_start(2001, enter_a_share_and_no_more));
		user_end(greedy);
		user_end(modest);
		CHECK(sysfs_number("contexts") == 0);
		CHECK(sysfs_write("release", "all") == 0 && sysfs_number("contexts_kept") == 0);
	}
	CHECK(chmod(DEVICE, 0600) == 0);
}

/* --- processes -------------------------------------------------------------------------------- */

static void processes(void)
{
	struct velo_card_take take;
	int file = context_open(&take), wait_for_child[2], status;
	uint64_t *ring = context_map(file, VELO_CARD_RING, 0, PAGE, PROT_READ), word;
	char *at = pages(4);
	struct pollfd poll_file = { file, POLLIN, 0 };
	uint32_t page;
	pid_t pid;

	memset(at, 1, 4 * PAGE);
	CHECK(context_enter(file, at, 4 * PAGE, 3, &page) == 0);
	CHECK(ring != MAP_FAILED && pipe(wait_for_child) == 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		unsigned char in_core;

		failures = 0;
		/* The child has the file, and nothing of the context. */
		CHECK_FAILS(context_withdraw(file, page), EPERM);
		CHECK_FAILS(context_enter(file, at, PAGE, 3, &page), EPERM);
		CHECK_FAILS(context_arm(file, 0, 0), EPERM);
		CHECK_FAILS((long)context_map(file, VELO_CARD_RING, 0, PAGE, PROT_READ), EPERM);
		CHECK_FAILS(pread(file, &word, 8, (off_t)VELO_CARD_OFFSET(VELO_CARD_STORES, 0)),
			    EPERM);
		CHECK_FAILS(context_take(file, VELO_CARD_ANY, &take), EEXIST);
		CHECK_FAILS(mincore(ring, PAGE, &in_core), ENOMEM); /* Nothing is mapped there. */
		at[0] = 2; /* A copy: the parent's page stays where the card knows it. */
		fflush(stdout);
		_exit(failures != 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(at[0] == 1 && sysfs_number("pages") == 4);

	/* The owner ends and a child still has the file: nothing is left but the file. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int orphan = context_open(&take);
		void *mine = pages(2);

		CHECK(context_enter(orphan, mine, 2 * PAGE, 3, &page) == 0);
		if (fork() == 0) {
			char end;

			close(wait_for_child[1]);
			(void)!read(wait_for_child[0], &end, 1);
			poll_file.fd = orphan;
			CHECK(poll(&poll_file, 1, 0) == 1 && poll_file.revents & POLLHUP);
			fflush(stdout);
			_exit(failures != 0);
		}
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(sysfs_number("contexts") == 1 && sysfs_number("pages") == 4);
	close(wait_for_child[1]);
	close(wait_for_child[0]);
	CHECK(waitpid(-1, &status, 0) > 0 && status == 0);
	munmap(ring, PAGE);
	close(file);
	CHECK(sysfs_number("contexts") == 0 && sysfs_number("pages") == 0);
}

/* --- messages --------------------------------------------------------------------------------- */

/* One of each length, and then @lines more; 0: so many that they go around the ring twice. */
static void send_and_receive(unsigned int lines)
{
	struct port to, from;
	uint64_t line[9];
	unsigned int words, burst, sent, i;
	bool is_twice = !lines;
	uint64_t at;

	port_open(&to, VELO_CARD_ANY);
	port_open(&from, to.take.number);
	for (words = 1; words <= 8; words++) {
		make_line(line, (uint8_t)words, words);
		send_line(&from, words - 1, line, words);
		if (!receive(&to, (uint8_t)words, words, from.take.number))
			goto out;
		wait_until_taken(&from);
	}
	/* The kernel's line, for who has none. */
	make_line(line, 99, 8);
	at = target_page(to.take.node, to.take.number) | 7 << 6;
	CHECK(pwrite(from.file, line, 64, (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS, at)) == 64);
	if (!receive(&to, 99, 8, from.take.number))
		goto out;
	CHECK_FAILS(pwrite(from.file, line, 63, (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS, at)),
		    EINVAL);
	CHECK_FAILS(pwrite(from.file, line, 72, (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS, at)),
		    EINVAL);
	CHECK_FAILS(pwrite(from.file, line, 64, (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS, at | 8)),
		    EINVAL);
	CHECK_FAILS(pwrite(from.file, line, 64, (off_t)VELO_CARD_OFFSET(VELO_CARD_DESCRIPTORS, 0)),
		    EINVAL);
	CHECK_FAILS(pwrite(from.file, line, 64, 0), EINVAL);
	/* A burst is as many as the share holds if the host splits each into its words. */
	burst = maps_pages() ? from.take.store_lines / 2 : 4;
	lines = lines ? lines : 2 * to.take.ring_slots;
	if (!CHECK(burst > 0))
		goto out;
	/* The kernel tells the card what was read, so often that the ring would be full without it. */
	if (is_twice)
		pointers_unmap(&to);
	for (i = 0; i < lines; i = sent) {
		if (maps_pages() && to.ring_pointer == MAP_FAILED && i > to.take.ring_slots + burst)
			to.ring_pointer = context_map(to.file, VELO_CARD_RING_POINTER, 0, PAGE,
						      PROT_WRITE);
		for (sent = i; sent < lines && sent < i + burst; sent++) {
			make_line(line, (uint8_t)sent, 2);
			send_line(&from, 1, line, 2);
		}
		for (; i < sent; i++) {
			if (!receive(&to, (uint8_t)i, 2, from.take.number))
				goto out;
		}
		wait_until_taken(&from);
	}
	CHECK(sysfs_number("counters/pcie_stores_dropped") == 0);
out:
	port_close(&to);
	port_close(&from);
}

static void messages(void)
{
	send_and_receive(0);
}

/* After a reset or removal a ring is new: a few show that, and take seconds on a simulated card. */
static void messages_again(void)
{
	send_and_receive(100);
}

/* The same of the queue, which the kernel tells the card about. */
static void notifications(void)
{
	struct port port;
	unsigned int i;

	port_open_at(&port, 7, VELO_CARD_ANY); /* Not the first one, whose pointer is at the beginning. */
	pointers_unmap(&port);
	for (i = 0; i < port.take.queue_entries + 8; i++)
		if (!CHECK(put(&port, 0, 0, 8) >= 0))
			break;
	port_close(&port);
}

struct later {
	struct port *from;
	volatile bool sleeping;
};

static void *send_later(void *argument)
{
	struct later *later = argument;
	uint64_t line[8];

	while (!later->sleeping)
		;
	usleep(200000);
	make_line(line, 5, 8);
	send_line(later->from, 7, line, 8);
	return NULL;
}

/* A process that sleeps before the message is sent is woken by it. */
static void wakes(void)
{
	struct port to, from;
	struct pollfd poll_file;
	struct later later = { .from = &from };
	pthread_t thread;

	port_open(&to, VELO_CARD_ANY);
	port_open(&from, to.take.number);
	poll_file = (struct pollfd){ to.file, POLLIN, 0 };
	CHECK(poll(&poll_file, 1, 0) == 0);
	CHECK(context_arm(to.file, 0, 0) == 1);
	CHECK(pthread_create(&thread, NULL, send_later, &later) == 0);
	later.sleeping = true;
	CHECK(poll(&poll_file, 1, 60000) == 1 && poll_file.revents == POLLIN);
	pthread_join(thread, NULL);
	CHECK(context_arm(to.file, 0, 0) == 0);
	CHECK(receive(&to, 5, 8, from.take.number));
	CHECK(poll(&poll_file, 1, 0) == 1); /* Of the heads that were told last. */
	CHECK(context_arm(to.file, to.head, 0) == 1);
	CHECK(poll(&poll_file, 1, 0) == 0);
	port_close(&to);
	port_close(&from);
}

static void remote_memory(void)
{
	const unsigned int count = 8;
	struct port port;
	char *from = pages(count), *to = pages(count);
	uint32_t from_page, to_page, i;

	port_open(&port, VELO_CARD_ANY);
	for (i = 0; i < count * PAGE; i++)
		from[i] = (char)(i * 7 + i / PAGE);
	CHECK(context_enter(port.file, from, count * PAGE, 1, &from_page) == 0);
	CHECK(context_enter(port.file, to, count * PAGE, 2, &to_page) == 0);
	CHECK(put(&port, from_page, to_page, count * PAGE) == VELO_ERROR_NONE);
	CHECK(memcmp(from, to, count * PAGE) == 0);
	CHECK(put(&port, to_page, from_page, 8) == VELO_ERROR_RIGHT);

	/* After a withdrawal nothing is written any more. */
	CHECK(context_withdraw(port.file, to_page) == 0);
	memset(to, 0, count * PAGE);
	CHECK(put(&port, from_page, to_page, 64) == VELO_ERROR_UNREGISTERED);
	for (i = 0; i < count * PAGE; i++)
		if (to[i])
			break;
	CHECK(i == count * PAGE);
	/* The same when it is unmapped. */
	CHECK(context_enter(port.file, to, count * PAGE, 2, &to_page) == 0);
	munmap(to, PAGE);
	CHECK(put(&port, from_page, to_page, 64) == VELO_ERROR_UNREGISTERED);
	port_close(&port);
	CHECK(sysfs_number("pages") == 0);
}

/*
 * Messages and notifications to a closed context go nowhere; the next owner of its number sees none
 * of them.
 */
static void closed(void)
{
	struct port to, from, next;
	long dropped = sysfs_number("counters/dropped");
	uint64_t line[8], words[2];
	unsigned int i;

	port_open(&to, VELO_CARD_ANY);
	port_open(&from, to.take.number);
	CHECK(notify(&from, to.take.number) == VELO_ERROR_NONE);
	CHECK(notified(&to, words) && velo_rma_notification_error(words[0]) == VELO_ERROR_NONE);
	make_line(line, 1, 8);
	send_line(&from, 7, line, 8);
	wait_until_taken(&from);
	port_close(&to);
	CHECK(sysfs_number("counters/dropped") == dropped);
	for (i = 0; i < 3; i++)
		CHECK(pwrite(from.file, line, 64, (off_t)VELO_CARD_OFFSET(VELO_CARD_TARGETS,
			     target_page(to.take.node, to.take.number) | 7 << 6)) == 64);
	for (i = 0; i < 10000 && sysfs_number("counters/dropped") != dropped + 3; i++)
		usleep(1000);
	CHECK(sysfs_number("counters/dropped") == dropped + 3);
	CHECK(sysfs_number("counters/completer_error_context") == to.take.number);
	CHECK(notify(&from, to.take.number) == VELO_ERROR_CONTEXT);

	port_open_at(&next, to.take.number, VELO_CARD_ANY);
	CHECK(next.take.number == to.take.number && next.take.opened == to.take.opened + 1);
	CHECK(next.ring[0] == 0);
	send_line(&from, 7, line, 8);
	CHECK(receive(&next, 1, 8, from.take.number));
	port_close(&next);
	port_close(&from);
}

/* --- read pointers ---------------------------------------------------------------------------- */

/* By the kernel; what they do is seen in messages() and notifications(). */
static void pointers(void)
{
	const unsigned int kinds[] = { VELO_CARD_RING_POINTER, VELO_CARD_QUEUE_POINTER };
	struct velo_card_take take;
	int file = open(DEVICE, O_RDWR | O_CLOEXEC);
	uint64_t words[2] = { 0 };
	unsigned int i;
	off_t at;

	for (i = 0; i < 2; i++) {
		at = (off_t)VELO_CARD_OFFSET(kinds[i], 0);
		CHECK_FAILS(pwrite(file, words, 8, at), EBADFD);
	}
	CHECK(context_take(file, VELO_CARD_ANY, &take) == 0);
	for (i = 0; i < 2; i++) {
		at = (off_t)VELO_CARD_OFFSET(kinds[i], 0);
		CHECK(pwrite(file, words, 8, at) == 8);
		CHECK_FAILS(pwrite(file, words, 0, at), EINVAL);
		CHECK_FAILS(pwrite(file, words, 4, at), EINVAL);
		CHECK_FAILS(pwrite(file, words, 16, at), EINVAL);
		CHECK_FAILS(pwrite(file, words, 8, at + 8), EINVAL);
		CHECK_FAILS(pwrite(file, words, 8, at + (off_t)PAGE), EINVAL);
		CHECK_FAILS(pwrite(file, (void *)-PAGE, 8, at), EFAULT);
		CHECK_FAILS(pread(file, words, 8, at), EINVAL);
	}
	close(file);
}

/* --- settings --------------------------------------------------------------------------------- */

static void settings(void)
{
	const char *bad[] = { "1", "1 2 3x", "256 0", "0 8192", "x" };
	long node = sysfs_number("node");
	char text[32];
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(sysfs_write("routes", bad[i]) == EINVAL);
	CHECK(sysfs_write("node", "256") == EINVAL && sysfs_write("links", "256") == EINVAL);
	CHECK(sysfs_write("node", "200") == 0 && sysfs_number("node") == 200);
	snprintf(text, sizeof(text), "%ld", node);
	CHECK(sysfs_write("node", text) == 0 && sysfs_number("node") == node);
	CHECK(sysfs_write("ring_patience", "1048576") == EINVAL);
	snprintf(text, sizeof(text), "%ld", sysfs_number("ring_patience"));
	CHECK(sysfs_write("ring_patience", "1000") == 0 && sysfs_number("ring_patience") == 1000);
	CHECK(sysfs_write("ring_patience", text) == 0);
	snprintf(text, sizeof(text), "%ld", sysfs_number("access_patience"));
	CHECK(sysfs_write("access_patience", "0") == 0 && sysfs_number("access_patience") == 0);
	CHECK(sysfs_write("access_patience", text) == 0);
	CHECK(sysfs_number("counters/sent") >= 0 && sysfs_number("counters/link0_up") >= 0);
}

/* --- tracepoints ------------------------------------------------------------------------------ */

#define TRACING "/sys/kernel/tracing/"

/* What the tracepoints have told, as far as it fits. */
static char traced[65536];

static void read_trace(void)
{
	int file = open(TRACING "trace", O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t more;

	CHECK(file >= 0);
	while ((more = read(file, traced + len, sizeof(traced) - 1 - len)) > 0)
		len += (size_t)more;
	traced[len] = 0;
	close(file);
}

/* The next of the lines that are told in this order. Returns the place behind it. */
__attribute__((format(printf, 2, 3)))
static const char *expect(const char *at, const char *format, ...)
{
	char line[192];
	va_list rest;
	const char *found;

	va_start(rest, format);
	vsnprintf(line, sizeof(line), format, rest);
	va_end(rest);
	found = strstr(at, line);
	if (CHECK(found))
		return found + strlen(line);
	printf("# nowhere is '%s' in\n%s", line, at);
	return at;
}

/* Each tracepoint tells what the driver did. */
static void traces(void)
{
	const uint64_t bad = VELO_CARD_OFFSET(VELO_CARD_TARGETS, 4);
	struct pollfd poll_file;
	struct port port;
	char *memory = pages(2);
	const char *at = traced;
	uint64_t line[8], own;
	unsigned int number;
	uint32_t page;

	CHECK(mount("nodev", TRACING, "tracefs", 0, NULL) == 0 || errno == EBUSY);
	CHECK(file_write(TRACING "trace", "\n") == 0);
	CHECK(file_write(TRACING "events/velo/enable", "1") == 0);
	port_open(&port, VELO_CARD_ANY);
	number = port.take.number;
	own = VELO_CARD_OFFSET(VELO_CARD_TARGETS, target_page(port.take.node, number));
	poll_file = (struct pollfd){ port.file, POLLIN, 0 };
	CHECK(context_enter(port.file, memory, 2 * PAGE, 3, &page) == 0);
	make_line(line, 1, 1);
	CHECK(context_arm(port.file, 0, 0) == 1);
	CHECK(pwrite(port.file, line, 8, (off_t)own) == 8);
	CHECK(poll(&poll_file, 1, 60000) == 1);
	CHECK_FAILS(pwrite(port.file, line, 16, (off_t)bad), EINVAL);
	CHECK(context_withdraw(port.file, page) == 0);
	CHECK(file_write(SYSFS "device/reset", "1") == 0);
	port_close(&port);
	CHECK(file_write(TRACING "events/velo/enable", "0") == 0);
	read_trace();

	at = expect(at, "velo_take: card=0 number=%u user=0 lines=%u opened=%u\n", number,
		    port.take.store_lines, port.take.opened);
	at = expect(at, "velo_enter: card=0 number=%u first_page=%u page_count=2 rights=3 ", number,
		    page);
	expect(at, "velo_send: card=0 number=%u offset=0x%lx len_bytes=8 result=8\n", number, own);
	/* On another processor the interrupt may be earlier than the end of the call. */
	expect(at, " woken=1 watching=0\n");
	at = expect(at, "velo_send: card=0 number=%u offset=0x%lx len_bytes=16 result=-22\n",
		    number, bad);
	at = expect(at, "velo_withdraw: card=0 number=%u first_page=%u page_count=2 rights=3 ",
		    number, page);
	at = expect(at, "velo_end_contexts: card=0 count=1 broken=0\n");
	expect(at, "velo_end: card=0 number=%u\n", number);
}

/* --- the card goes ---------------------------------------------------------------------------- */

/* Some page that can be mapped. */
static unsigned int kind_to_store_to(void)
{
	return maps_pages() ? VELO_CARD_RING_POINTER : VELO_CARD_QUEUE;
}

/* The function is reset under open files. */
static void reset(void)
{
	struct velo_card_take take;
	int file = context_open(&take), reset_file, other;
	volatile uint64_t *pointer = context_map(file, kind_to_store_to(), 0, PAGE, PROT_WRITE);
	struct pollfd poll_file = { file, POLLIN, 0 };
	long resets = sysfs_number("resets");
	char *at = pages(2);
	uint32_t page;
	uint64_t word = 0;

	CHECK(context_enter(file, at, 2 * PAGE, 3, &page) == 0);
	CHECK(pointer != MAP_FAILED && store_signal(pointer) == 0);
	reset_file = open(SYSFS "device/reset", O_WRONLY);
	CHECK(reset_file >= 0 && write(reset_file, "1", 1) == 1);
	close(reset_file);
	CHECK(sysfs_number("resets") == resets + 1);
	CHECK(sysfs_number("contexts") == 0 && sysfs_number("pages") == 0);
	CHECK(store_signal(pointer) == 0); /* It goes nowhere. */
	CHECK(poll(&poll_file, 1, 0) == 1 && poll_file.revents & POLLHUP);
	CHECK_FAILS(context_enter(file, at, 2 * PAGE, 3, &page), ENODEV);
	CHECK_FAILS(context_withdraw(file, page), ENODEV);
	CHECK_FAILS((long)context_map(file, VELO_CARD_RING, 0, PAGE, PROT_READ), ENODEV);
	CHECK_FAILS(pread(file, &word, 8, (off_t)VELO_CARD_OFFSET(VELO_CARD_STORES, 0)), ENODEV);
	CHECK_FAILS(pwrite(file, &word, 8, (off_t)VELO_CARD_OFFSET(VELO_CARD_RING_POINTER, 0)), ENODEV);
	CHECK_FAILS(may_store(file, 0), ENODEV);
	/* Another one works. */
	other = context_open(&take);
	CHECK(context_enter(other, at, 2 * PAGE, 3, &page) == 0);
	close(other);
	close(file);
	munmap((void *)pointer, PAGE);
}

/* The card is taken out, and found again. */
static void removal(void)
{
	struct velo_card_take take;
	int file = context_open(&take), other;
	volatile uint64_t *pointer = context_map(file, kind_to_store_to(), 0, PAGE, PROT_WRITE);
	struct pollfd poll_file = { file, POLLIN, 0 };
	char *at = pages(2 * system_page() / PAGE);
	uint32_t page;

	CHECK(context_enter(file, at, 2 * PAGE, 3, &page) == 0);
	CHECK(pointer != MAP_FAILED && store_signal(pointer) == 0);
	card_pull_out();
	CHECK(sysfs_number("contexts") == -1 && access(DEVICE, F_OK) == -1);
	CHECK(store_signal(pointer) == 0); /* It goes nowhere. */
	CHECK(poll(&poll_file, 1, 0) == 1 && poll_file.revents & POLLHUP);
	CHECK_FAILS(context_withdraw(file, page), ENODEV);
	CHECK_FAILS(context_enter(file, at, PAGE, 3, &page), ENODEV);
	munmap(at, system_page());
	close(file);
	munmap((void *)pointer, PAGE); /* Now its number is free again. */
	card_plug_in();
	other = context_open(&take);
	CHECK(context_enter(other, at + system_page(), PAGE, 3, &page) == 0);
	close(other);
}

static void memory_limit_as_a_child(void)
{
	in_child(memory_limit);
}

static void shares_as_a_child(void)
{
	in_child(shares);
}

int main(int argc, char **argv)
{
	const bool plain = argc > 1 && strcmp(argv[1], "--plain") == 0;
	const struct test tests[] = {
		{ "settings", settings },
		{ "take", take },
		{ "sizes", sizes },
		{ "take_all", take_all },
		{ "maps", maps },
		{ "grants", grants },
		{ "pointers", pointers },
		{ "memory", memory },
		{ "memory_limit", memory_limit_as_a_child },
		{ "shares", shares_as_a_child },
		{ "processes", processes },
		{ "messages", plain ? NULL : messages },
		{ "notifications", plain ? NULL : notifications },
		{ "wakes", plain ? NULL : wakes },
		{ "closed", plain ? NULL : closed },
		{ "remote_memory", plain ? NULL : remote_memory },
		{ "traces", plain ? NULL : traces },
		{ "reset", plain ? NULL : reset },
		{ "messages after the reset", plain ? NULL : messages_again },
		{ "removal", plain ? NULL : removal },
		{ "messages after the removal", plain ? NULL : messages_again },
	};

	return tests_run(tests, sizeof(tests) / sizeof(*tests), plain ? NULL : argv[1]);
}
