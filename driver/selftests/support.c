// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#include "support.h"

unsigned int checks, failures;

bool check(bool holds, const char *what, const char *file, int line)
{
	checks++;
	if (holds)
		return true;
	failures++;
	printf("FAILED %s:%d: %s (errno %s)\n", file, line, what, strerror(errno));
	return false;
}

bool check_fails(long result, int error, const char *what, const char *file, int line)
{
	int got = errno;

	checks++;
	if (result == -1 && got == error)
		return true;
	failures++;
	printf("FAILED %s:%d: %s: %s, and not %s\n", file, line, what,
	       result == -1 ? strerror(got) : "no error", strerror(error));
	return false;
}

static long number_in(const char *folder, const char *name)
{
	char path[256], text[64] = "";
	ssize_t len = -1;
	int file;

	snprintf(path, sizeof(path), "%s%s", folder, name);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file >= 0) {
		len = read(file, text, sizeof(text) - 1);
		close(file);
	}
	return len > 0 ? strtol(text, NULL, 0) : -1;
}

long sysfs_number(const char *name)
{
	return number_in(SYSFS, name);
}

long parameter_number(const char *name)
{
	return number_in("/sys/module/velo/parameters/", name);
}

int sysfs_write(const char *name, const char *text)
{
	char path[256];
	int file, error = 0;

	snprintf(path, sizeof(path), SYSFS "%s", name);
	file = open(path, O_WRONLY | O_CLOEXEC);
	if (file < 0)
		return errno;
	if (write(file, text, strlen(text)) != (ssize_t)strlen(text))
		error = errno;
	close(file);
	return error;
}

int context_take(int file, uint32_t number, struct velo_card_take *take)
{
	*take = (struct velo_card_take){
		.spec_hash = VELO_SPEC_HASH,
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
	printf("FAILED: no context: %s\n", strerror(errno));
	exit(1);
}

void *context_map(int file, unsigned int kind, uint64_t rest, size_t len_bytes, int protection)
{
	return mmap(NULL, len_bytes, protection, MAP_SHARED, file,
		    (off_t)VELO_CARD_OFFSET(kind, rest));
}

int context_enter(int file, void *at, size_t len_bytes, uint32_t rights, uint32_t *first_page)
{
	struct velo_card_memory memory = {
		.address = (uintptr_t)at,
		.len_bytes = len_bytes,
		.rights = rights,
	};
	int result = ioctl(file, VELO_CARD_ENTER, &memory);

	*first_page = memory.first_page;
	return result;
}

int context_withdraw(int file, uint32_t first_page)
{
	return ioctl(file, VELO_CARD_WITHDRAW, &first_page);
}
