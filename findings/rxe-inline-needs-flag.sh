#!/usr/bin/env bash
# Soft-RoCE: a request whose payload ibv_wr_set_inline_data() copied fails, unless IBV_SEND_INLINE is set as well.
#
# Seen: ibverbs-providers 44.0-2 (Debian 12), Linux 6.1.192-2, 2026-11-28. ibv_wr_post(3) lists the flags of a request that is built by
# the functions ibv_wr_*; IBV_SEND_INLINE is not one of them, as the setter already says that the payload is copied. The provider of
# Soft-RoCE copies it, but leaves the flag to the program. The kernel then takes the copied bytes for a list of places in memory, and
# the request ends with IBV_WC_LOC_QP_OP_ERR. With the flag it succeeds. perftest sets it in both interfaces, so that it never sees
# this.
#
# Whoever builds inline requests for all devices sets the flag; linerate does (docs/decisions/rdma-and-fabric.md).
# Boots a guest without network or disks: needs QEMU, a C compiler, kmod and busybox-static, no rights. Exits with 0 if the behaviour
# is as described, 1 if it changed.
set -euo pipefail
readonly version=6.1.0-56-amd64
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir packages root
cd packages
apt-get -q download "linux-image-$version=6.1.192-2" libibverbs1=44.0-2 libibverbs-dev=44.0-2 ibverbs-providers=44.0-2 \
  iproute2=6.1.0-3 libnl-3-200 libnl-route-3-200 libmnl0 libbsd0 libcap2 libmd0 >/dev/null
for package in *.deb; do dpkg -x "$package" ../root; done
cd ../root

cat >inline.c <<'C'
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#define MUST(x) do { if (!(x)) { printf("%s failed\n", #x); return 1; } } while (0)
static char memory[4096];
static int routed(struct ibv_context *context, union ibv_gid *gid) {
  for (int index = 0; index < 8; index++)
    if (!ibv_query_gid(context, 1, index, gid) && gid->raw[10] == 0xff && gid->raw[11] == 0xff)
      return index;
  return -1;
}
static int connect_to(struct ibv_qp *qp, unsigned to, int index, union ibv_gid gid) {
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
    return 0;
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = to, .max_dest_rd_atomic = 1, .min_rnr_timer = 12};
  a.ah_attr.is_global = 1, a.ah_attr.port_num = 1, a.ah_attr.grh.dgid = gid, a.ah_attr.grh.sgid_index = index, a.ah_attr.grh.hop_limit = 1;
  if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
    return 0;
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 6, .max_rd_atomic = 1};
  return !ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}
static int sent(struct ibv_context *context, unsigned flags, const char *what) {
  struct ibv_pd *pd = ibv_alloc_pd(context);
  struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_qp_init_attr_ex attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = pd,
    .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64},
    .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = IBV_QP_EX_WITH_SEND};
  struct ibv_qp *near = ibv_create_qp_ex(context, &attr), *far = ibv_create_qp_ex(context, &attr);
  union ibv_gid gid;
  int index = routed(context, &gid);
  MUST(mr && near && far && index >= 0);
  MUST(connect_to(near, far->qp_num, index, gid) && connect_to(far, near->qp_num, index, gid));
  struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 64, .lkey = mr->lkey};
  struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;
  MUST(!ibv_post_recv(far, &receive, &bad));
  struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(near);
  ibv_wr_start(qp);
  qp->wr_id = 1, qp->wr_flags = IBV_SEND_SIGNALED | flags;
  ibv_wr_send(qp);
  ibv_wr_set_inline_data(qp, "inline payload", 14);
  MUST(!ibv_wr_complete(qp));
  for (struct ibv_wc wc;;)
    if (ibv_poll_cq(cq, 1, &wc) > 0 && wc.wr_id == 1)
      return printf("%s: %s\n", what, ibv_wc_status_str(wc.status)) < 0;
}
int main(void) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  MUST(list && list[0]);
  struct ibv_context *context = ibv_open_device(list[0]);
  MUST(context);
  return sent(context, 0, "without IBV_SEND_INLINE") || sent(context, IBV_SEND_INLINE, "with IBV_SEND_INLINE");
}
C
cc -O1 -Iusr/include -o inline inline.c "$(find usr/lib -name 'libibverbs.so.1*' | head -1)"

# The guest's file system: the program with its libraries, and the modules of Soft-RoCE in the order in which they are loaded.
mkdir -p guest/{bin,dev,proc,sys,etc,modules,lib64}
depmod -b . "$version" 2>/dev/null || true
for module in dummy crc32_generic ib_uverbs rdma_rxe; do modprobe -d . -S "$version" --show-depends "$module"; done |
  awk '$1 == "insmod" && !seen[$2]++ {print $2}' >modules
number=0
while read -r module; do
  number=$((number + 1))
  cp "$module" "$(printf 'guest/modules/%03d.ko' "$number")"
done <modules
cp "$(command -v busybox)" guest/bin/busybox
cp inline "$(find . -path '*bin/rdma' -type f | head -1)" guest/bin/
cp -L /lib64/ld-linux-x86-64.so.2 guest/lib64/
libraries=$(find "$PWD" -path "$PWD/lib/modules" -prune -o -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
for file in guest/bin/inline guest/bin/rdma; do
  LD_LIBRARY_PATH=$libraries ldd "$file" | awk '$3 ~ "^/" {print $3}'
done | sort -u | xargs -I {} cp -L {} guest/lib64/
provider=$(find usr/lib -name 'librxe-rdmav*.so' -printf '%h\n' | head -1)
mkdir -p "guest/$provider" guest/etc/libibverbs.d
cp -L "$provider"/librxe-rdmav*.so "guest/$provider/"
echo "driver rxe" >guest/etc/libibverbs.d/rxe.driver
cat >guest/init <<'INIT'
#!/bin/busybox sh
export PATH=/bin LD_LIBRARY_PATH=/lib64
busybox mount -t proc proc /proc; busybox mount -t sysfs sysfs /sys; busybox mount -t devtmpfs dev /dev
for module in /modules/*; do busybox insmod $module; done
busybox ip link add d0 type dummy; busybox ip addr add 10.9.0.1/24 dev d0; busybox ip link set d0 up
rdma link add rxe0 type rxe netdev d0
busybox sleep 2
inline
busybox poweroff -f
INIT
chmod +x guest/init
(cd guest && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >initrd
timeout 120 qemu-system-x86_64 -M q35 -accel tcg -cpu max -smp 2 -m 512 -nodefaults -display none -no-reboot -serial stdio \
  -kernel "boot/vmlinuz-$version" -initrd initrd -append "console=ttyS0 quiet panic=-1" </dev/null | tr -d '\r' | tee seen
if grep -q '^without IBV_SEND_INLINE: local QP operation error' seen && grep -q '^with IBV_SEND_INLINE: success' seen; then
  echo "as seen before"
else
  echo "CHANGED"
  exit 1
fi
