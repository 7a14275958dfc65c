/*
 * A stand-in for libibverbs whose device completes each request at once: what a program spends on posting and polling
 * can then be counted without a device. No payload moves. Sends are counted at their destination, so that two processes
 * can send and receive: the counters are in a file that both map, $STUB_VERBS.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_get_device_list

enum { QPS = 1024, RING = 1 << 15 };

struct shared {
  atomic_uint next;
  struct {
    _Alignas(64) atomic_ullong arrived;
    atomic_uint length;
  } qp[QPS];
};

/* A queue of completions: of requests that were sent, or of receive requests for which a message arrived. */
struct queue {
  struct ibv_cq cq;
  struct pair *receiver;
  uint64_t ids[RING];
  unsigned head, tail;
};

struct pair {
  struct ibv_qp qp;
  uint64_t posted[RING];
  unsigned long long head, tail;
  uint32_t to;
};

static struct shared *shared;
static struct ibv_context context;
static struct ibv_device device = {
    .node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB, .name = "stub0", .dev_name = "uverbs0"};

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc) {
  struct queue *queue = (struct queue *)cq;
  int got = 0;
  for (; got < most && queue->head != queue->tail; got++) {
    memset(&wc[got], 0, sizeof *wc);
    wc[got].wr_id = queue->ids[queue->head++ % RING];
  }
  struct pair *pair = queue->receiver;
  if (pair == NULL || got == most)
    return got;
  unsigned slot = pair->qp.qp_num % QPS;
  unsigned long long arrived = atomic_load_explicit(&shared->qp[slot].arrived, memory_order_acquire);
  unsigned length = atomic_load_explicit(&shared->qp[slot].length, memory_order_relaxed);
  for (; got < most && pair->head != pair->tail && pair->head < arrived; got++) {
    memset(&wc[got], 0, sizeof *wc);
    wc[got].opcode = IBV_WC_RECV;
    wc[got].byte_len = length;
    wc[got].qp_num = pair->qp.qp_num;
    wc[got].wr_id = pair->posted[pair->head++ % RING];
  }
  return got;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
  struct pair *pair = (struct pair *)qp;
  struct queue *queue = (struct queue *)qp->send_cq;
  unsigned slot = pair->to % QPS;
  (void)bad;
  for (; wr != NULL; wr = wr->next) {
    if (wr->opcode == IBV_WR_SEND) {
      atomic_store_explicit(&shared->qp[slot].length, wr->num_sge ? wr->sg_list->length : 0, memory_order_relaxed);
      atomic_fetch_add_explicit(&shared->qp[slot].arrived, 1, memory_order_release);
    }
    if (wr->send_flags & IBV_SEND_SIGNALED)
      queue->ids[queue->tail++ % RING] = wr->wr_id;
  }
  return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  struct pair *pair = (struct pair *)qp;
  (void)bad;
  for (; wr != NULL; wr = wr->next)
    pair->posted[pair->tail++ % RING] = wr->wr_id;
  return 0;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited) {
  (void)cq, (void)solicited;
  return 0;
}

static void map(void) {
  const char *name = getenv("STUB_VERBS");
  int fd = open(name ? name : "/dev/shm/stub-verbs", O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, sizeof *shared))
    abort();
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
}

struct ibv_device **ibv_get_device_list(int *count) {
  struct ibv_device **list = calloc(2, sizeof *list);
  list[0] = &device;
  if (count)
    *count = 1;
  return list;
}
void ibv_free_device_list(struct ibv_device **list) { free(list); }
const char *ibv_get_device_name(struct ibv_device *d) { return d->name; }

struct ibv_context *ibv_open_device(struct ibv_device *d) {
  map();
  context.device = d;
  context.ops.poll_cq = poll_cq;
  context.ops.req_notify_cq = req_notify_cq;
  context.ops.post_send = post_send;
  context.ops.post_recv = post_recv;
  context.num_comp_vectors = 1;
  return &context;
}
int ibv_close_device(struct ibv_context *c) { return (void)c, 0; }

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a) {
  (void)c;
  memset(a, 0, sizeof *a);
  a->max_qp = QPS, a->max_qp_wr = RING / 2, a->max_sge = 16, a->max_cqe = RING, a->max_cq = 64, a->max_mr = 1024;
  a->max_qp_rd_atom = a->max_qp_init_rd_atom = 16, a->atomic_cap = IBV_ATOMIC_HCA, a->phys_port_cnt = 1;
  return 0;
}
int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *to) {
  struct ibv_port_attr *a = (struct ibv_port_attr *)to;
  (void)c, (void)port;
  memset(a, 0, offsetof(struct ibv_port_attr, port_cap_flags2));
  a->state = IBV_PORT_ACTIVE, a->max_mtu = a->active_mtu = IBV_MTU_4096, a->gid_tbl_len = 1;
  a->max_msg_sz = 1u << 31, a->lid = 1, a->active_width = 2, a->active_speed = 32, a->phys_state = 5;
  a->link_layer = IBV_LINK_LAYER_INFINIBAND;
  return 0;
}
int ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid) {
  (void)c, (void)port, (void)index;
  memset(gid, 1, sizeof *gid);
  return 0;
}
int _ibv_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index, struct ibv_gid_entry *e, uint32_t f,
                      size_t size) {
  (void)c, (void)f;
  memset(e, 0, size);
  e->gid_index = index, e->port_num = port;
  return 0;
}
struct ibv_pd *ibv_alloc_pd(struct ibv_context *c) {
  struct ibv_pd *pd = calloc(1, sizeof *pd);
  pd->context = c;
  return pd;
}
int ibv_dealloc_pd(struct ibv_pd *pd) { return free(pd), 0; }

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t size, int access) {
  struct ibv_mr *mr = calloc(1, sizeof *mr);
  (void)access;
  mr->context = pd->context, mr->pd = pd, mr->addr = at, mr->length = size, mr->lkey = mr->rkey = 7;
  return mr;
}
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t size, uint64_t iova, unsigned access) {
  (void)iova;
  return ibv_reg_mr(pd, at, size, (int)access);
}
int ibv_dereg_mr(struct ibv_mr *mr) { return free(mr), 0; }

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c) {
  (void)c;
  errno = ENOSYS;
  return NULL;
}
int ibv_destroy_comp_channel(struct ibv_comp_channel *c) { return (void)c, ENOSYS; }
int ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **of) {
  return (void)c, (void)cq, (void)of, -1;
}
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n) { (void)cq, (void)n; }

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int size, void *of, struct ibv_comp_channel *ch, int v) {
  struct queue *queue = calloc(1, sizeof *queue);
  (void)v;
  queue->cq.context = c, queue->cq.cqe = size, queue->cq.cq_context = of, queue->cq.channel = ch;
  return &queue->cq;
}
int ibv_destroy_cq(struct ibv_cq *cq) { return free(cq), 0; }

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a) {
  struct pair *pair = calloc(1, sizeof *pair);
  pair->qp.context = pd->context, pair->qp.pd = pd, pair->qp.send_cq = a->send_cq, pair->qp.recv_cq = a->recv_cq;
  pair->qp.qp_type = a->qp_type;
  pair->qp.qp_num = 1 + atomic_fetch_add(&shared->next, 1) % (QPS - 1);
  atomic_store(&shared->qp[pair->qp.qp_num % QPS].arrived, 0);
  ((struct queue *)a->recv_cq)->receiver = pair;
  return &pair->qp;
}
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask) {
  if (mask & IBV_QP_DEST_QPN)
    ((struct pair *)qp)->to = a->dest_qp_num;
  return 0;
}
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *i) {
  (void)qp, (void)mask;
  memset(a, 0, sizeof *a);
  memset(i, 0, sizeof *i);
  i->cap.max_inline_data = 220;
  return 0;
}
int ibv_destroy_qp(struct ibv_qp *qp) { return free(qp), 0; }
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a) {
  (void)a;
  struct ibv_ah *ah = calloc(1, sizeof *ah);
  ah->pd = pd;
  return ah;
}
int ibv_destroy_ah(struct ibv_ah *ah) { return free(ah), 0; }
