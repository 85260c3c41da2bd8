// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * What a process may map: see include/uapi/linux/velo.h.
 *
 * Pages are put into a mapping when they are first accessed, and taken out again when the context
 * ends or a grant is withdrawn. velo_card.live is held for both, so none is put in afterwards.
 *
 * That a card is reset is no fault of the process, so it gets no signal: it then finds pages that
 * show nothing, and that take what it stores.
 */
#include <linux/mm.h>
#include <linux/pgtable.h>

#include "velo.h"

#define VELO_KIND_PAGES_SHIFT (VELO_CARD_KIND_SHIFT - PAGE_SHIFT)

static unsigned int velo_map_kind(pgoff_t page)
{
	return page >> VELO_KIND_PAGES_SHIFT;
}

static pgoff_t velo_map_rest(pgoff_t page)
{
	return page & ((1ul << VELO_KIND_PAGES_SHIFT) - 1);
}

/* How many pages a kind has; 0: it cannot be mapped. */
static unsigned long velo_map_pages(unsigned int kind)
{
	switch (kind) {
	case VELO_CARD_RING:
		return velo_ring_bytes() >> PAGE_SHIFT;
	case VELO_CARD_QUEUE:
		return velo_queue_bytes() >> PAGE_SHIFT;
	case VELO_CARD_RING_POINTER:
	case VELO_CARD_QUEUE_POINTER:
	case VELO_CARD_DESCRIPTORS:
		return 1;
	case VELO_CARD_TARGETS:
		return 1ul << (VELO_ADDRESS_N_BITS - PAGE_SHIFT);
	default:
		return 0;
	}
}

/* Whether a kind is of pages of the card, not of memory. */
static bool velo_map_is_of_card(unsigned int kind)
{
	switch (kind) {
	case VELO_CARD_RING_POINTER:
	case VELO_CARD_QUEUE_POINTER:
	case VELO_CARD_DESCRIPTORS:
	case VELO_CARD_TARGETS:
		return true;
	default:
		return false;
	}
}

static unsigned long velo_memory_pfn(void *memory, pgoff_t page)
{
	void *at = memory + (page << PAGE_SHIFT);

	return is_vmalloc_addr(at) ? vmalloc_to_pfn(at) : page_to_pfn(virt_to_page(at));
}

static unsigned long velo_register_pfn(struct velo_context *ctx, u32 offset)
{
	phys_addr_t bar = pci_resource_start(ctx->card->pdev, VELO_BAR_REGISTERS);

	return (bar + offset + VELO_PAGE_BYTES * ctx->number) >> PAGE_SHIFT;
}

static unsigned long velo_window_pfn(struct velo_context *ctx, u32 target, u8 unit)
{
	return (ctx->card->window + velo_window_pack(target, ctx->number, unit)) >> PAGE_SHIFT;
}

/* The page behind a place of a mapping; 0: there is none any more. */
static unsigned long velo_map_pfn(struct velo_context *ctx, pgoff_t page)
{
	pgoff_t rest = velo_map_rest(page);
	unsigned int kind = velo_map_kind(page);

	if (rest >= velo_map_pages(kind))
		return 0;
	switch (kind) {
	case VELO_CARD_RING:
		return velo_memory_pfn(ctx->ring, rest);
	case VELO_CARD_QUEUE:
		return velo_memory_pfn(ctx->queue, rest);
	case VELO_CARD_RING_POINTER:
		return velo_register_pfn(ctx, VELO_REG_READ_POINTERS);
	case VELO_CARD_QUEUE_POINTER:
		return velo_register_pfn(ctx, VELO_REG_QUEUE_READ_POINTERS);
	case VELO_CARD_DESCRIPTORS:
		if (!velo_granted_all(ctx))
			return 0;
		return velo_window_pfn(ctx, 0, VELO_UNIT_RMA);
	case VELO_CARD_TARGETS:
		if (!velo_granted(ctx, rest << PAGE_SHIFT))
			return 0;
		velo_number_stored_to(ctx, rest << PAGE_SHIFT);
		return velo_window_pfn(ctx, rest << PAGE_SHIFT, VELO_UNIT_VELO);
	default:
		return 0;
	}
}

/* Pages for stores, queue and ring: what is stored looks neither like entry nor line. */
#define VELO_NOWHERE_ORDER 2

/* The page that a place has once the context has ended; 0: there is no memory. */
static unsigned long velo_map_nowhere(struct velo_context *ctx, struct vm_fault *vmf)
{
	unsigned int kind = velo_map_kind(vmf->pgoff);
	struct page *pages;

	if (!READ_ONCE(ctx->nowhere)) {
		pages = alloc_pages(GFP_KERNEL_ACCOUNT | __GFP_ZERO, VELO_NOWHERE_ORDER);
		if (!pages)
			return 0;
		if (cmpxchg(&ctx->nowhere, NULL, pages)) /* Another thread was faster. */
			__free_pages(pages, VELO_NOWHERE_ORDER);
	}
	if (kind == VELO_CARD_RING) /* Which is mapped for reading only. */
		return page_to_pfn(READ_ONCE(ctx->nowhere)) + 2;
	return page_to_pfn(READ_ONCE(ctx->nowhere)) + (kind == VELO_CARD_QUEUE);
}

/* Nothing is mapped any more. */
void velo_map_free(struct velo_context *ctx)
{
	if (ctx->nowhere)
		__free_pages(ctx->nowhere, VELO_NOWHERE_ORDER);
}

static vm_fault_t velo_map_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct velo_context *ctx = vma->vm_file->private_data;
	vm_fault_t result = VM_FAULT_SIGBUS;
	pgprot_t prot = vma->vm_page_prot;
	unsigned long pfn;

	down_read(&ctx->card->live);
	if (ctx->dead) {
		pfn = velo_map_nowhere(ctx, vmf);
		prot = vm_get_page_prot(vma->vm_flags); /* Memory as any other. */
	} else {
		pfn = velo_map_pfn(ctx, vmf->pgoff);
	}
	if (pfn)
		result = vmf_insert_pfn_prot(vma, vmf->address, pfn, prot);
	up_read(&ctx->card->live);
	return result;
}

static const struct vm_operations_struct velo_map_operations = {
	.fault = velo_map_fault,
};

static bool velo_map_is_granted(struct velo_context *ctx, pgoff_t first, unsigned long count)
{
	pgoff_t page;

	for (page = first; page < first + count; page++)
		if (!velo_granted(ctx, page << PAGE_SHIFT))
			return false;
	return true;
}

static void velo_map_flags(struct vm_area_struct *vma, unsigned int kind)
{
	/* A child does not inherit what is a context's. */
	unsigned long flags = VM_IO | VM_PFNMAP | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP;
	unsigned long never = kind == VELO_CARD_RING ? VM_MAYWRITE : 0;

#ifdef VELO_HAS_VM_FLAGS_MOD
	vm_flags_mod(vma, flags, never);
#else
	vma->vm_flags = (vma->vm_flags | flags) & ~never;
#endif
}

/**
 * velo_map() - map something of a context
 * @ctx: the context; velo_card.live is held, it is not dead
 * @vma: where, and what
 *
 * Return: 0, or an error.
 */
int velo_map(struct velo_context *ctx, struct vm_area_struct *vma)
{
	unsigned int kind = velo_map_kind(vma->vm_pgoff);
	pgoff_t rest = velo_map_rest(vma->vm_pgoff);
	unsigned long count = vma_pages(vma);
	unsigned long pages = velo_map_pages(kind);

	if (velo_map_is_of_card(kind) && !VELO_MAPS_PAGES)
		return -EOPNOTSUPP;
	if (!(vma->vm_flags & VM_SHARED) || count > pages || rest > pages - count)
		return -EINVAL;
	if (kind == VELO_CARD_RING && vma->vm_flags & VM_WRITE)
		return -EACCES;
	if (kind == VELO_CARD_TARGETS && !velo_map_is_granted(ctx, rest, count))
		return -EPERM;
	/* A descriptor itself says where it goes, and the card does not check grants. */
	if (kind == VELO_CARD_DESCRIPTORS && !velo_granted_all(ctx))
		return -EPERM;
	velo_map_flags(vma, kind);
	switch (kind) {
	case VELO_CARD_RING_POINTER:
	case VELO_CARD_QUEUE_POINTER:
		vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
		break;
	case VELO_CARD_DESCRIPTORS:
	case VELO_CARD_TARGETS:
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
		break;
	}
	/*
	 * No processor encrypts a card's pages, nor, in a guest, memory that the kernel gave the
	 * card. In a host it might, so velo_card_set_up() refuses that.
	 */
	vma->vm_page_prot = pgprot_decrypted(vma->vm_page_prot);
	vma->vm_ops = &velo_map_operations;
	return 0;
}

static loff_t velo_map_start(unsigned int kind)
{
	return (loff_t)kind << VELO_CARD_KIND_SHIFT;
}

/* Take all pages out of all mappings; who may access one again gets it by a fault. */
void velo_map_zap(struct velo_context *ctx)
{
	unmap_mapping_range(ctx->mapping, 0, 0, 1);
}

/* The same of pages that a grant gives. */
void velo_map_zap_stores(struct velo_context *ctx)
{
	BUILD_BUG_ON(VELO_CARD_DESCRIPTORS + 1 != VELO_CARD_TARGETS);
	unmap_mapping_range(ctx->mapping, velo_map_start(VELO_CARD_DESCRIPTORS),
			    velo_map_start(2), 1);
}
