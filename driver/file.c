// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * File operations of /dev/veloN: see include/uapi/linux/velo.h.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "velo.h"

static int velo_open(struct inode *inode, struct file *file)
{
	struct velo_card *card = container_of(inode->i_cdev, struct velo_card, cdev);
	struct velo_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return -ENOMEM;
	ctx->card = card;
	ctx->user = file->f_cred->fsuid;
	ctx->mapping = file->f_mapping;
	mutex_init(&ctx->lock);
	init_waitqueue_head(&ctx->wait);
	INIT_LIST_HEAD(&ctx->regions);
	get_device(&card->dev);
	file->private_data = ctx;
	return 0;
}

static int velo_release(struct inode *inode, struct file *file)
{
	velo_context_close(file->private_data);
	return 0;
}

/* Nothing of a context is another process's, even if it has the file. */
static int velo_check_caller(struct velo_context *ctx)
{
	if (!velo_context_taken(ctx))
		return -EBADFD;
	return ctx->mm == current->mm ? 0 : -EPERM;
}

/*
 * Copies a call's struct, which begins with its size, from a process that was built with an older
 * or newer one. `known` bytes are this driver's, `least` those of the first version.
 */
static int velo_copy_in(void *to, size_t known, size_t least, const void __user *from)
{
	u32 size;
	int err;

	if (get_user(size, (const u32 __user *)from))
		return -EFAULT;
	if (size < least)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(to, known, from, size);
	if (!err)
		*(u32 *)to = size; /* Another thread may have written to it meanwhile. */
	return err;
}

static int velo_copy_out(void __user *to, const void *from, size_t known)
{
	return copy_to_user(to, from, min_t(size_t, known, *(const u32 *)from)) ? -EFAULT : 0;
}

#define VELO_COPY_IN(to, last, from) \
	velo_copy_in(to, sizeof(*(to)), offsetofend(typeof(*(to)), last), from)

static long velo_ioctl_take(struct velo_context *ctx, void __user *argument)
{
	struct velo_card_take take;
	int err = VELO_COPY_IN(&take, stores_layout, argument);

	if (!err)
		err = velo_context_take(ctx, &take);
	return err ? err : velo_copy_out(argument, &take, sizeof(take));
}

static long velo_ioctl_enter(struct velo_context *ctx, void __user *argument)
{
	struct velo_card_enter enter;
	int err = VELO_COPY_IN(&enter, reserved, argument);

	if (!err)
		err = velo_memory_enter(ctx, &enter);
	if (err)
		return err;
	err = velo_copy_out(argument, &enter, sizeof(enter));
	if (err)
		velo_memory_withdraw(ctx, enter.first_page);
	return err;
}

static long velo_ioctl_withdraw(struct velo_context *ctx, void __user *argument)
{
	struct velo_card_withdraw withdraw;
	int err = VELO_COPY_IN(&withdraw, first_page, argument);

	if (!err && withdraw.flags)
		err = -EINVAL;
	return err ? err : velo_memory_withdraw(ctx, withdraw.first_page);
}

static long velo_ioctl_arm(struct velo_context *ctx, void __user *argument)
{
	struct velo_card_arm arm;
	int err = VELO_COPY_IN(&arm, ready, argument);

	if (!err && arm.flags)
		err = -EINVAL;
	if (err)
		return err;
	down_read(&ctx->card->live);
	err = ctx->dead ? -ENODEV : velo_interrupt_arm(ctx, &arm);
	up_read(&ctx->card->live);
	return err ? err : velo_copy_out(argument, &arm, sizeof(arm));
}

static long velo_ioctl(struct file *file, unsigned int command, unsigned long value)
{
	long (*call)(struct velo_context *ctx, void __user *argument);
	struct velo_context *ctx = file->private_data;
	void __user *argument = (void __user *)value;
	int err;

	switch (command) {
	case VELO_CARD_TAKE:
		return velo_ioctl_take(ctx, argument);
	case VELO_CARD_ENTER:
		call = velo_ioctl_enter;
		break;
	case VELO_CARD_WITHDRAW:
		call = velo_ioctl_withdraw;
		break;
	case VELO_CARD_ARM:
		call = velo_ioctl_arm;
		break;
	default:
		return -ENOTTY;
	}
	err = velo_check_caller(ctx);
	if (err)
		return err;
	return READ_ONCE(ctx->dead) ? -ENODEV : call(ctx, argument);
}

static int velo_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct velo_context *ctx = file->private_data;
	int err = velo_check_caller(ctx);

	if (err)
		return err;
	down_read(&ctx->card->live);
	err = ctx->dead ? -ENODEV : velo_map(ctx, vma);
	up_read(&ctx->card->live);
	return err;
}

static __poll_t velo_poll(struct file *file, poll_table *wait)
{
	return velo_interrupt_poll(file->private_data, file, wait);
}

static ssize_t velo_read(struct file *file, char __user *to, size_t len_bytes, loff_t *offset)
{
	struct velo_context *ctx = file->private_data;
	int err = velo_check_caller(ctx);
	u64 word = 0;

	if (err)
		return err;
	if (len_bytes != sizeof(word) || (*offset != VELO_CARD_OFFSET(VELO_CARD_STORES, 0) &&
					  *offset != VELO_CARD_OFFSET(VELO_CARD_SHARE, 0)))
		return -EINVAL;
	down_read(&ctx->card->live);
	if (ctx->dead) {
		err = -ENODEV;
	} else if (*offset == VELO_CARD_OFFSET(VELO_CARD_STORES, 0)) {
		word = velo_node_stores(ctx->card);
	} else { /* Without the kernel's lines, which may be lent to it. */
		word = velo_node_share_word(ctx->card, ctx->number);
		word = velo_pcie_share_pack(ctx->lines, velo_pcie_share_dropped(word));
	}
	up_read(&ctx->card->live);
	if (err)
		return err;
	return copy_to_user(to, &word, sizeof(word)) ? -EFAULT : sizeof(word);
}

/* As a process with the page does it: any word, of which the card takes what it has bits for. */
static ssize_t velo_write_pointer(struct velo_context *ctx, u32 offset, const u64 *word,
				  size_t len_bytes)
{
	int err = 0;

	if (len_bytes != sizeof(*word))
		return -EINVAL;
	down_read(&ctx->card->live);
	if (ctx->dead)
		err = -ENODEV;
	else
		velo_reg_write(ctx->card, offset + VELO_PAGE_BYTES * ctx->number, *word);
	up_read(&ctx->card->live);
	return err ? err : len_bytes;
}

static ssize_t velo_write(struct file *file, const char __user *from, size_t len_bytes,
			  loff_t *offset)
{
	struct velo_context *ctx = file->private_data;
	int err = velo_check_caller(ctx);
	u64 line[VELO_LINE_BYTES / 8];

	if (err)
		return err;
	if (len_bytes % 8 || len_bytes > sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len_bytes))
		return -EFAULT;
	if (*offset == VELO_CARD_OFFSET(VELO_CARD_RING_POINTER, 0))
		return velo_write_pointer(ctx, VELO_REG_READ_POINTERS, line, len_bytes);
	if (*offset == VELO_CARD_OFFSET(VELO_CARD_QUEUE_POINTER, 0))
		return velo_write_pointer(ctx, VELO_REG_QUEUE_READ_POINTERS, line, len_bytes);
	return velo_send(ctx, line, len_bytes, *offset);
}

/* The kernel shows what the file has to those who may look into the process. */
static void velo_show_fdinfo(struct seq_file *to, struct file *file)
{
	struct velo_context *ctx = file->private_data;
	unsigned long pages;
	unsigned int regions;

	if (!velo_context_taken(ctx) || READ_ONCE(ctx->dead))
		return;
	velo_memory_count(ctx, &regions, &pages);
	seq_printf(to, "velo-number:\t%u\nvelo-lines:\t%u\nvelo-regions:\t%u\nvelo-pages:\t%lu\n",
		   ctx->number, ctx->lines, regions, pages);
}

const struct file_operations velo_file_operations = {
	.owner = THIS_MODULE,
	.open = velo_open,
	.release = velo_release,
	.unlocked_ioctl = velo_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = velo_mmap,
	.poll = velo_poll,
	.read = velo_read,
	.write = velo_write,
	.show_fdinfo = velo_show_fdinfo,
};
