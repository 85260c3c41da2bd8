// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * File operations of /dev/veloN: see spec/velo_card.h.
 */
#include <linux/cred.h>
#include <linux/fs.h>
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

static long velo_ioctl_take(struct velo_context *ctx, void __user *argument)
{
	struct velo_card_take take;
	int err;

	if (copy_from_user(&take, argument, sizeof(take)))
		return -EFAULT;
	err = velo_context_take(ctx, &take);
	if (err)
		return err;
	return copy_to_user(argument, &take, sizeof(take)) ? -EFAULT : 0;
}

static long velo_ioctl_enter(struct velo_context *ctx, void __user *argument)
{
	struct velo_card_memory memory;
	int err;

	if (copy_from_user(&memory, argument, sizeof(memory)))
		return -EFAULT;
	err = velo_memory_enter(ctx, &memory);
	if (err)
		return err;
	if (!copy_to_user(argument, &memory, sizeof(memory)))
		return 0;
	velo_memory_withdraw(ctx, memory.first_page);
	return -EFAULT;
}

static long velo_ioctl_withdraw(struct velo_context *ctx, void __user *argument)
{
	u32 first_page;

	if (copy_from_user(&first_page, argument, sizeof(first_page)))
		return -EFAULT;
	return velo_memory_withdraw(ctx, first_page);
}

static long velo_ioctl_arm(struct velo_context *ctx, void __user *argument)
{
	struct velo_card_arm arm;
	int err;

	if (copy_from_user(&arm, argument, sizeof(arm)))
		return -EFAULT;
	if (arm.reserved)
		return -EINVAL;
	down_read(&ctx->card->live);
	err = ctx->dead ? -ENODEV : velo_interrupt_arm(ctx, &arm);
	up_read(&ctx->card->live);
	if (err)
		return err;
	return copy_to_user(argument, &arm, sizeof(arm)) ? -EFAULT : 0;
}

static long velo_ioctl(struct file *file, unsigned int command, unsigned long value)
{
	struct velo_context *ctx = file->private_data;
	void __user *argument = (void __user *)value;
	int err;

	if (command == VELO_CARD_TAKE)
		return velo_ioctl_take(ctx, argument);
	err = velo_check_caller(ctx);
	if (err)
		return err;
	if (READ_ONCE(ctx->dead))
		return -ENODEV;
	switch (command) {
	case VELO_CARD_ENTER:
		return velo_ioctl_enter(ctx, argument);
	case VELO_CARD_WITHDRAW:
		return velo_ioctl_withdraw(ctx, argument);
	case VELO_CARD_ARM:
		return velo_ioctl_arm(ctx, argument);
	default:
		return -ENOTTY;
	}
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
	if (len_bytes != sizeof(word) || *offset != VELO_CARD_OFFSET(VELO_CARD_STORES, 0))
		return -EINVAL;
	down_read(&ctx->card->live);
	if (ctx->dead)
		err = -ENODEV;
	else
		word = velo_node_stores(ctx->card);
	up_read(&ctx->card->live);
	if (err)
		return err;
	return copy_to_user(to, &word, sizeof(word)) ? -EFAULT : sizeof(word);
}

static ssize_t velo_write(struct file *file, const char __user *from, size_t len_bytes,
			  loff_t *offset)
{
	struct velo_context *ctx = file->private_data;
	int err = velo_check_caller(ctx);
	u64 line[VELO_LINE_BYTES / 8];

	if (err)
		return err;
	if (!len_bytes || len_bytes % 8 || len_bytes > sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len_bytes))
		return -EFAULT;
	return velo_send(ctx, line, len_bytes, *offset);
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
};
