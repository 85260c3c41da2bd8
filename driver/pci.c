// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Cards: found, reset, gone.
 *
 * Files may be open when the function goes away: the card's struct stays until the last one is
 * closed, and is dead until then.
 */
#include <linux/cc_platform.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm_runtime.h>
#include <linux/slab.h>

#include "trace.h"
#include "velo.h"

#define VELO_CARDS_MAX 16
/* Registers name addresses of memory by bits 47:0. */
#define VELO_DMA_BITS 48
/*
 * How long one process may stop others: 100 ms at 100 MHz, in cycles. The times below are such
 * that each of these stops ends by then. (They are computed: no card of that clock has been
 * measured.)
 *
 * Each context has a patience for its ring and one for its queue. While what is for a full one
 * waits, it uses up patience; without any it is dropped at once. So all of them together stop the
 * node for no longer than this, and by and by each gets patience back.
 */
#define VELO_STOP_CYCLES_MAX 10000000u
#define VELO_RING_PATIENCE 16384u
static_assert(2 * VELO_VPIDS * VELO_RING_PATIENCE <= VELO_STOP_CYCLES_MAX);
/*
 * The access patience is how long a store may wait to leave. It is this many times as long as all
 * stores that the function holds may wait for full rings. The node takes a link that is down for
 * dead when packets have waited for it for a quarter to half of that time. Until then these
 * packets stand in the way of other stores, which must not be given up. Half of what the register
 * holds ends a stop in time, however many stores the function holds.
 */
#define VELO_ACCESS_RINGS 4
static_assert(VELO_REG_ACCESS_WATCHDOG_CYCLES_MASK / 2 < VELO_STOP_CYCLES_MAX);
/*
 * A node that owes as many answers as it may for half of the answer patience, or for up to all of
 * it, gets no more requests; until then descriptors behind the next one wait.
 */
#define VELO_ANSWER_PATIENCE 8388608u
static_assert(VELO_ANSWER_PATIENCE < VELO_STOP_CYCLES_MAX);
/*
 * Cycles between two interrupts of a vector: 20 us at 100 MHz. Contexts share a vector, so while
 * one of them sleeps, messages to all of them interrupt the processor, at most so often.
 */
#define VELO_MODERATION 2048
/* A card that nobody uses sleeps after that, if root lets it (power/control). */
#define VELO_AUTOSUSPEND_MS 2000

static DEFINE_IDA(velo_minors);
static dev_t velo_devices;

static struct class velo_class = {
	.name = "velo",
};

static void velo_card_release(struct device *dev)
{
	struct velo_card *card = container_of(dev, struct velo_card, dev);

	velo_shares_free(card);
	pci_dev_put(card->pdev);
	ida_free(&velo_minors, MINOR(dev->devt));
	kfree(card);
}

/* --- the end of contexts ---------------------------------------------------------------------- */

static struct velo_context *velo_card_any_context(struct velo_card *card)
{
	unsigned int v, i;

	for (v = 0; v < card->vector_count; v++)
		for (i = 0; i < VELO_CONTEXTS_PER_VECTOR_MAX; i++)
			if (card->vectors[v].contexts[i])
				return card->vectors[v].contexts[i];
	return NULL;
}

/**
 * velo_card_end_contexts() - the card is dead from now on, and so are its contexts
 * @card: the card; velo_card.state is held
 */
void velo_card_end_contexts(struct velo_card *card)
{
	struct velo_context *ctx;

	lockdep_assert_held(&card->state);
	trace_velo_end_contexts(card);
	down_write(&card->live);
	card->dead = true;
	up_write(&card->live);
	while ((ctx = velo_card_any_context(card))) {
		velo_context_end(ctx);
		velo_map_zap(ctx);
	}
	velo_interrupt_quiet(card);
}

static void velo_card_rescue(struct work_struct *work)
{
	struct velo_card *card = container_of(work, struct velo_card, rescue);

	mutex_lock(&card->state);
	if (READ_ONCE(card->broken)) { /* Else a reset was faster, and the card works. */
		velo_dump(card, "broken", true);
		velo_card_end_contexts(card);
	}
	mutex_unlock(&card->state);
}

/* --- reset ------------------------------------------------------------------------------------ */

static void velo_reset_prepare(struct pci_dev *pdev)
{
	struct velo_card *card = pci_get_drvdata(pdev);

	mutex_lock(&card->state);
	velo_dump(card, "reset", true);
	velo_card_end_contexts(card);
	mutex_unlock(&card->state);
}

/* A card that has slept because nobody used it was not reset, to those who count. */
static int velo_card_revive(struct velo_card *card, bool is_reset)
{
	int err;

	mutex_lock(&card->state);
	WRITE_ONCE(card->resets, card->resets + is_reset);
	err = velo_node_check(card);
	if (!err && READ_ONCE(card->broken) && !velo_node_was_reset(card)) {
		dev_err(&card->pdev->dev, "the reset had no effect\n");
		err = -EIO;
	}
	if (!err) {
		velo_node_shut_down(card);
		pci_set_master(card->pdev);
		WRITE_ONCE(card->broken, false);
		velo_node_set_up(card);
		pci_save_state(card->pdev); /* For velo_slot_reset(). */
		down_write(&card->live);
		card->dead = false;
		up_write(&card->live);
	} else {
		WRITE_ONCE(card->broken, true);
		pci_clear_master(card->pdev);
	}
	mutex_unlock(&card->state);
	return err;
}

/* The kernel calls this after a reset that failed, too. */
static void velo_reset_done(struct pci_dev *pdev)
{
	velo_card_revive(pci_get_drvdata(pdev), true);
}

static pci_ers_result_t velo_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct velo_card *card = pci_get_drvdata(pdev);

	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	WRITE_ONCE(card->broken, true); /* Its registers cannot be reached. */
	/* Else it might write to memory that it is about to lose. */
	pci_clear_master(pdev);
	mutex_lock(&card->state);
	velo_dump(card, "pcie", false);
	velo_card_end_contexts(card);
	mutex_unlock(&card->state);
	return state == pci_channel_io_perm_failure ? PCI_ERS_RESULT_DISCONNECT :
						      PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t velo_slot_reset(struct pci_dev *pdev)
{
	/* The device was never disabled, so it is not enabled again: its command comes back. */
	pci_restore_state(pdev);
	return velo_card_revive(pci_get_drvdata(pdev), true) ? PCI_ERS_RESULT_DISCONNECT :
							       PCI_ERS_RESULT_RECOVERED;
}

static const struct pci_error_handlers velo_error_handlers = {
	.error_detected = velo_error_detected,
	.slot_reset = velo_slot_reset,
	.reset_prepare = velo_reset_prepare,
	.reset_done = velo_reset_done,
};

/* --- sleep ------------------------------------------------------------------------------------ */

/*
 * A card that sleeps keeps nothing, so contexts end as at a reset when the machine sleeps. While
 * the machine is awake a card that has contexts or links may receive at any time, and forwards
 * what other nodes send each other. One that has neither, and is not broken, sleeps. Each context
 * that is taken keeps it awake, and who reads a counter wakes it. Settings are written to it when
 * it wakes up.
 */
static void velo_card_lie_down(struct velo_card *card)
{
	velo_card_end_contexts(card);
	if (!READ_ONCE(card->broken))
		velo_node_shut_down(card);
	pci_clear_master(card->pdev);
}

static int velo_suspend(struct device *dev)
{
	struct velo_card *card = dev_get_drvdata(dev);

	mutex_lock(&card->state);
	velo_card_lie_down(card);
	mutex_unlock(&card->state);
	return 0;
}

static int velo_resume(struct device *dev)
{
	return velo_card_revive(dev_get_drvdata(dev), true);
}

static int velo_runtime_suspend(struct device *dev)
{
	struct velo_card *card = dev_get_drvdata(dev);
	int err = 0;

	mutex_lock(&card->state);
	/* Sleep would be a reset of a broken card, for which root has not asked. */
	if (card->setup.links || READ_ONCE(card->broken))
		err = -EBUSY;
	else
		velo_card_lie_down(card);
	mutex_unlock(&card->state);
	return err;
}

/* A card that does not wake up is broken, as after a reset that failed. */
static int velo_runtime_resume(struct device *dev)
{
	velo_card_revive(dev_get_drvdata(dev), false);
	return 0;
}

/**
 * velo_card_put_awake() - who kept a card awake does so no longer
 * @card: the card, after pm_runtime_resume_and_get()
 */
void velo_card_put_awake(struct velo_card *card)
{
	pm_runtime_mark_last_busy(&card->pdev->dev);
	pm_runtime_put_autosuspend(&card->pdev->dev);
}

static const struct dev_pm_ops velo_sleep = {
	SYSTEM_SLEEP_PM_OPS(velo_suspend, velo_resume)
	RUNTIME_PM_OPS(velo_runtime_suspend, velo_runtime_resume, NULL)
};

/* --- found, and gone -------------------------------------------------------------------------- */

static void velo_card_put(void *data)
{
	struct velo_card *card = data;

	put_device(&card->dev);
}

static void velo_release_regions(void *data)
{
	pci_release_regions(data);
}

/*
 * Before pcim_enable_device(): after it some kernels release the regions once more by themselves,
 * and newer ones do not.
 */
static int velo_card_request(struct velo_card *card)
{
	struct pci_dev *pdev = card->pdev;
	const struct {
		int bar;
		unsigned int bits;
	} bars[] = {
		{ VELO_BAR_REGISTERS, VELO_PCIE_BAR0_BITS },
		{ VELO_BAR_WINDOW, VELO_PCIE_BAR2_BITS },
		{ VELO_BAR_FUNCTION, VELO_PCIE_BAR4_BITS },
	};
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(bars); i++)
		if (pci_resource_len(pdev, bars[i].bar) != BIT_ULL(bars[i].bits))
			return dev_err_probe(&pdev->dev, -ENODEV, "BAR%d has another size\n",
					     bars[i].bar);
	err = pci_request_regions(pdev, KBUILD_MODNAME);
	return err ? err : devm_add_action_or_reset(&pdev->dev, velo_release_regions, pdev);
}

static int velo_card_map(struct velo_card *card)
{
	struct pci_dev *pdev = card->pdev;

	card->regs = pcim_iomap(pdev, VELO_BAR_REGISTERS, 0);
	card->function = pcim_iomap(pdev, VELO_BAR_FUNCTION, 0);
	if (!card->regs || !card->function)
		return -ENOMEM;
	card->window = pci_resource_start(pdev, VELO_BAR_WINDOW);
	return 0;
}

static void velo_card_unreserve(void *data)
{
	struct velo_card *card = data;

	arch_io_free_memtype_wc(card->window, BIT_ULL(VELO_PCIE_BAR2_BITS));
}

/* Only then are mappings of the window write-combining; else they are slow. */
static int velo_card_reserve(struct velo_card *card)
{
	int err = arch_io_reserve_memtype_wc(card->window, BIT_ULL(VELO_PCIE_BAR2_BITS));

	if (err)
		return dev_err_probe(&card->pdev->dev, err, "no write-combining\n");
	return devm_add_action_or_reset(&card->pdev->dev, velo_card_unreserve, card);
}

/*
 * A process can store bytes to the card, which answers that it does not support that. A machine
 * must not take this for a failure of the card.
 */
static void velo_card_permit_bad_stores(struct pci_dev *pdev)
{
	int errors = pci_find_ext_capability(pdev, PCI_EXT_CAP_ID_ERR);
	u32 mask;

	pcie_capability_clear_word(pdev, PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_URRE);
	if (!errors)
		return;
	pci_read_config_dword(pdev, errors + PCI_ERR_UNCOR_MASK, &mask);
	pci_write_config_dword(pdev, errors + PCI_ERR_UNCOR_MASK, mask | PCI_ERR_UNC_UNSUP);
}

static u32 velo_access_patience(unsigned int lines)
{
	return min_t(u64, (u64)VELO_ACCESS_RINGS * lines * VELO_RING_PATIENCE,
		     VELO_REG_ACCESS_WATCHDOG_CYCLES_MASK);
}

static int velo_card_set_up(struct velo_card *card)
{
	struct pci_dev *pdev = card->pdev;
	unsigned int i;
	int err;

	/* A process maps memory of the card's, and would have to map it as the kernel does. */
	if (cc_platform_has(CC_ATTR_HOST_MEM_ENCRYPT) || !dev_is_dma_coherent(&pdev->dev))
		return dev_err_probe(&pdev->dev, -EOPNOTSUPP, "%s\n",
				     dev_is_dma_coherent(&pdev->dev) ?
					     "memory is encrypted (mem_encrypt=off)" :
					     "its accesses do not go through the caches");
	err = velo_card_request(card);
	if (!err)
		err = pcim_enable_device(pdev);
	if (!err)
		err = velo_card_map(card);
	if (!err)
		err = velo_card_reserve(card);
	if (!err)
		err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(VELO_DMA_BITS));
	if (!err)
		err = velo_node_check(card);
	if (err)
		return err;
	/* The node's table is of pages, so memory may be mapped in pieces of any length. */
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	dma_set_seg_boundary(&pdev->dev, ULONG_MAX);
	velo_node_shut_down(card);
	err = velo_memory_init(card);
	if (!err)
		err = velo_interrupt_init(card);
	if (!err)
		err = velo_counters_init(card);
	if (!err)
		err = velo_grants_init(card);
	if (err)
		return err;
	card->lines = velo_pcie_function_store_lines(readq(card->function +
							   VELO_PCIE_REG_FUNCTION));
	card->lines_free = card->lines - velo_lines_kernel(card);
	for (i = 0; i < VELO_NODES; i++)
		card->setup.routes[i] = VELO_ROUTE_NONE;
	card->setup.routes[0] = VELO_ROUTE_LOCAL;
	card->setup.ring_patience = VELO_RING_PATIENCE;
	card->setup.access_patience = velo_access_patience(card->lines);
	card->setup.answer_patience = VELO_ANSWER_PATIENCE;
	card->setup.moderation = VELO_MODERATION;
	velo_card_permit_bad_stores(pdev);
	pci_set_master(pdev);
	velo_node_set_up(card);
	return 0;
}

static struct velo_card *velo_card_make(struct pci_dev *pdev)
{
	struct velo_card *card = kzalloc(sizeof(*card), GFP_KERNEL);
	int minor;

	if (!card)
		return NULL;
	minor = ida_alloc_max(&velo_minors, VELO_CARDS_MAX - 1, GFP_KERNEL);
	if (minor < 0) {
		kfree(card);
		return NULL;
	}
	card->pdev = pci_dev_get(pdev); /* Open files outlive the function. */
	mutex_init(&card->state);
	mutex_init(&card->send);
	init_rwsem(&card->live);
	mutex_init(&card->pages);
	spin_lock_init(&card->numbers_lock);
	INIT_WORK(&card->rescue, velo_card_rescue);
	device_initialize(&card->dev);
	card->dev.class = &velo_class;
	card->dev.parent = &pdev->dev;
	card->dev.devt = MKDEV(MAJOR(velo_devices), minor);
	card->dev.release = velo_card_release;
	dev_set_name(&card->dev, "velo%d", minor);
	velo_shares_init(card);
	cdev_init(&card->cdev, &velo_file_operations);
	card->cdev.owner = THIS_MODULE;
	return card;
}

static int velo_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct velo_card *card = velo_card_make(pdev);
	const struct attribute_group **groups;
	int err;

	if (!card)
		return -ENOMEM;
	pci_set_drvdata(pdev, card);
	/* Let go of last: interrupts and others that are released before it name the card. */
	err = devm_add_action_or_reset(&pdev->dev, velo_card_put, card);
	if (err)
		return err;
	groups = devm_kcalloc(&pdev->dev, 3, sizeof(*groups), GFP_KERNEL);
	if (!groups)
		return -ENOMEM;
	groups[0] = &velo_settings_group;
	groups[1] = &card->counters;
	card->dev.groups = groups;
	err = velo_card_set_up(card);
	if (err)
		return err;
	err = cdev_device_add(&card->cdev, &card->dev);
	if (err) {
		pci_clear_master(pdev);
		return err;
	}
	pci_save_state(pdev); /* For velo_slot_reset(). */
	pm_runtime_set_autosuspend_delay(&pdev->dev, VELO_AUTOSUSPEND_MS);
	pm_runtime_use_autosuspend(&pdev->dev);
	velo_card_put_awake(card); /* The bus keeps it awake for a probe. */
	dev_info(&pdev->dev, "%s: %u contexts\n", dev_name(&card->dev),
		 card->vector_count * velo_contexts_per_vector());
	return 0;
}

static void velo_remove(struct pci_dev *pdev)
{
	struct velo_card *card = pci_get_drvdata(pdev);

	pm_runtime_get_noresume(&pdev->dev); /* As it was before the probe; the bus has woken it. */
	pm_runtime_dont_use_autosuspend(&pdev->dev);
	cdev_device_del(&card->cdev, &card->dev);
	if (!pci_device_is_present(pdev))
		WRITE_ONCE(card->broken, true);
	mutex_lock(&card->state);
	velo_card_end_contexts(card);
	if (!READ_ONCE(card->broken))
		velo_node_shut_down(card);
	mutex_unlock(&card->state);
	cancel_work_sync(&card->rescue);
	pci_clear_master(pdev);
}

static void velo_shutdown(struct pci_dev *pdev)
{
	struct velo_card *card = pci_get_drvdata(pdev);

	mutex_lock(&card->state);
	velo_card_end_contexts(card);
	mutex_unlock(&card->state);
	pci_clear_master(pdev);
}

static const struct pci_device_id velo_ids[] = {
	{ PCI_DEVICE(VELO_PCIE_VENDOR, VELO_PCIE_DEVICE) },
	{}
};
MODULE_DEVICE_TABLE(pci, velo_ids);

static struct pci_driver velo_driver = {
	.name = KBUILD_MODNAME,
	.id_table = velo_ids,
	.probe = velo_probe,
	.remove = velo_remove,
	.shutdown = velo_shutdown,
	.err_handler = &velo_error_handlers,
	.driver.pm = pm_ptr(&velo_sleep),
};

static int __init velo_init(void)
{
	int err = velo_context_check();

	if (err)
		return err;
	err = alloc_chrdev_region(&velo_devices, 0, VELO_CARDS_MAX, "velo");
	if (err)
		return err;
	err = class_register(&velo_class);
	if (err)
		goto unregister_devices;
	err = pci_register_driver(&velo_driver);
	if (err)
		goto unregister_class;
	return 0;
unregister_class:
	class_unregister(&velo_class);
unregister_devices:
	unregister_chrdev_region(velo_devices, VELO_CARDS_MAX);
	return err;
}

static void __exit velo_exit(void)
{
	pci_unregister_driver(&velo_driver);
	class_unregister(&velo_class);
	unregister_chrdev_region(velo_devices, VELO_CARDS_MAX);
	ida_destroy(&velo_minors);
}

module_init(velo_init);
module_exit(velo_exit);

MODULE_DESCRIPTION("Cards of the VELO interconnect");
MODULE_AUTHOR("The velo project");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1");
