/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A side is all that one endpoint needs: fabric, domain, address vector, completion queue,
 * counters. A wait for a completion reads the queues of all sides of its process, since
 * progress is manual: what a side got meanwhile is kept for it.
 *
 * The suite is written against libfabric's pages alone. $VELO_FI_TEST_PROVIDER names the provider,
 * "velo" without it; other providers say whether a test is right. What a provider does not offer is
 * skipped and says so, unless $VELO_FI_TEST_COMPLETE is set: then it fails. Of 259 tests, "sockets"
 * of libfabric 1.17 passes 202, skips 36 and fails 21: error codes, missing descriptors and flags,
 * and that a send waits for its match, which is velo's own promise.
 */
#ifndef VELO_FI_SIDE_H
#define VELO_FI_SIDE_H

#include <test.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define API_VERSION FI_VERSION(1, 17)
#define NAME_MAX_BYTES 256
#define SIDES_MAX 64

#define CHECK_FI(call) check_fi(__FILE__, __LINE__, #call, (call), 0)
#define CHECK_REFUSED(call, error) check_fi(__FILE__, __LINE__, #call, (call), -(error))

/* The result of a call, repeated while there is no room. */
#define POST(call)                                                                                 \
    do {                                                                                           \
        ssize_t posted_;                                                                           \
        int64_t end_ns_ = test_now_ns() + TEST_PATIENCE_NS;                                        \
        while ((posted_ = (call)) == -FI_EAGAIN && test_now_ns() < end_ns_)                        \
            sides_progress();                                                                      \
        check_fi(__FILE__, __LINE__, #call, posted_, 0);                                           \
    } while (0)

/* Repeat progress until it holds. */
#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        int64_t end_ns_ = test_now_ns() + TEST_PATIENCE_NS;                                        \
        while (!(condition)) {                                                                     \
            sides_progress();                                                                      \
            if (test_now_ns() > end_ns_)                                                           \
                test_fail(__FILE__, __LINE__, "%s never holds", #condition);                       \
        }                                                                                          \
    } while (0)

/* Zeros ask for the defaults. */
struct side_attr {
    uint64_t caps; /* FI_MSG | FI_TAGGED. */
    int mr_mode;
    enum fi_threading threading; /* FI_THREAD_DOMAIN. */
    enum fi_progress progress;   /* FI_PROGRESS_MANUAL. */
    enum fi_av_type av_type;     /* FI_AV_MAP. */
    enum fi_cq_format format;    /* FI_CQ_FORMAT_TAGGED; others need reads_itself. */
    enum fi_wait_obj wait;       /* FI_WAIT_NONE. */
    uint64_t tx_flags, rx_flags; /* Default flags of operations. */
    uint64_t tx_order, rx_order; /* FI_ORDER_SAS where messages are asked for. */
    uint64_t bind_flags;         /* FI_SELECTIVE_COMPLETION. */
    size_t tx_size, rx_size, cq_size, av_count;
    bool reads_itself; /* The test reads the queue: progress takes nothing from it. */
    bool has_counters; /* One that counts what this side does, one of what is done to it. */
};

struct completion {
    struct fi_cq_tagged_entry entry;
    fi_addr_t source;
    int error; /* Positive, of libfabric; 0 for a success. */
    size_t olen;
};

struct side {
    struct side_attr attr;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_cntr *done, *received; /* Of has_counters. */
    struct fid_ep *ep;
    char name[NAME_MAX_BYTES];
    size_t name_len;
    bool borrows; /* Fabric, domain, address vector and queue are another side's. */
    struct completion *kept;
    size_t kept_first, kept_end, kept_max;
};

/* Two sides that know each other. */
struct pair {
    struct side a, b;
    fi_addr_t to_a; /* As b knows it. */
    fi_addr_t to_b; /* As a knows it. */
    fi_addr_t a_to_a;
};

void check_fi(const char *file, int line, const char *call, long long status, long long expected);
const char *provider(void);
bool is_velo(void);
/* Tests of every size leave out what is longer: $VELO_FI_TEST_LONGEST, for simulated nodes. */
size_t longest(void);
/* How many file descriptors this process has open. */
size_t descriptors_open(void);
/* Leave the test: the provider does not offer this. */
__attribute__((noreturn)) void lacks(const char *what);

/* Hints that name the provider and ask for what attr says; fi_freeinfo() them. */
struct fi_info *hints_of(const struct side_attr *attr);
/* Leave the test if the provider does not offer this. Main thread only. */
void needs(const struct side_attr *attr);

/* Open all of it; leave the test if the provider does not offer it. */
void side_open(struct side *side, const struct side_attr *attr);
/* The parts of it: everything but the endpoint; the endpoint, bound, named and enabled. */
void side_open_domain(struct side *side, const struct side_attr *attr);
void side_open_endpoint(struct side *side);
/* Another endpoint over the domain, address vector and queue of host. */
void side_open_beside(struct side *side, struct side *host);
void side_close(struct side *side);
/* Make a name known. */
fi_addr_t side_learn(struct side *side, const struct side *other);

void pair_open(struct pair *pair, const struct side_attr *attr);
void pair_close(struct pair *pair);

/* Read the queues of all sides of this process once. */
void sides_progress(void);
/* Do so for a while: what has not happened by then was not going to. */
void sides_settle(void);
/* The next completion of a side, waited for; a failed one too. */
struct completion next(struct side *side);
/* The next completion of a side: a success with this context and these flags (others may be set).
 */
struct completion next_ok(struct side *side, const void *context, uint64_t flags);
/* The next completion of a side: a failure. */
struct completion next_error(struct side *side, const void *context, int error);
/* Has a side no completion left, and gets none for a while? */
void nothing_more(struct side *side);
/* How many completions of a side are there to take? */
size_t kept(const struct side *side);

/* --- several processes
 * --------------------------------------------------------------------------*/

#define RANKS_MAX 8

/* What processes share that run one test together. */
struct meeting {
    _Atomic uint32_t arrived;
    _Atomic uint32_t flags[16]; /* For the test. */
    uint64_t words[16];         /* Likewise. */
    int ranks;
    struct {
        char bytes[NAME_MAX_BYTES];
        size_t len;
    } names[RANKS_MAX];
};

/* Run body in this many processes and wait until each has returned. */
void processes_run(int ranks, void (*body)(struct meeting *meeting, int rank));
/* Start one of them; child_join() or child_kill() it. */
pid_t process_start(struct meeting *meeting, int rank, void (*body)(struct meeting *, int));
struct meeting *meeting_of(int ranks);
/* Wait until all ranks have come here, with progress. */
void meet(struct meeting *meeting);
/* Open a side and learn the names of all, in the order of their ranks. */
void side_open_among(struct side *side, const struct side_attr *attr, struct meeting *meeting,
                     int rank, fi_addr_t *addrs);
/* Learn the names of all for a side that is open. */
void side_introduce(struct side *side, struct meeting *meeting, int rank, fi_addr_t *addrs);

#endif
