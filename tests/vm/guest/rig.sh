#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# RDMA links and the kernel's NFS server, in the guest.
#   rig.sh nfsd [start|stop|restart]   siw stock|mended   reset   report
set -u
release=$(uname -r)
rxe_address=10.9.0.1

fail() { echo "rig: $*" >&2; exit 1; }

have_link() { rdma link show "$1/1" >/dev/null 2>&1; }

siw_up() { # flavour: both files hold a module named siw, so only one can be in the kernel
  if [ ! -d /sys/module/siw ]; then
    insmod "/lib/modules/$release/siw-$1/siw.ko" || fail "siw ($1) does not load"
    echo "$1" > /run/siw-flavour
  fi
  have_link siw0 || rdma link add siw0 type siw netdev eth0 || fail "no siw0"
  have_link siwlo || rdma link add siwlo type siw netdev lo || fail "no siwlo"
}

links_up() {
  modprobe -a ib_core iw_cm rdma_cm rdma_ucm ib_uverbs rdma_rxe rpcrdma nfsd nfsv4 veth libcrc32c crc32c_generic ||
    fail "modules do not load"
  siw_up "$(cat /run/siw-flavour 2>/dev/null || echo stock)"
  if [ ! -d /sys/class/net/rxe-a ]; then
    ip link add rxe-a mtu 9000 type veth peer name rxe-b mtu 9000
    ip addr add "$rxe_address/24" dev rxe-a
    ip link set rxe-a up
    ip link set rxe-b up
  fi
  have_link rxe0 || rdma link add rxe0 type rxe netdev rxe-a || fail "no rxe0"
}

trace_on() {
  local t=/sys/kernel/tracing e
  [ -d $t/events/rpcrdma ] || return 0
  for e in $t/events/rpcrdma/*err* $t/events/rpcrdma/xprtrdma_{inline_thresh,op_connect,op_close,nomrs_err} \
           $t/events/rpcrdma/svcrdma_{qp_error,wc_*_err,wc_*_flush} $t/events/rdma_cma/cm_{event_handler,disconnect}; do
    [ -e "$e/enable" ] && echo 1 > "$e/enable"
  done
  return 0
}

nfsd_start() {
  links_up
  trace_on
  mkdir -p /run/rpc_pipefs /export /var/lib/nfs/{v4recovery,nfsdcld}
  touch /var/lib/nfs/{etab,rmtab}
  mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd || fail "no nfsd file system"
  mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs
  mountpoint -q /export || mount -t tmpfs -o size=640m,mode=755 export /export
  mkdir -p /export/pub && chmod 1777 /export/pub
  if [ "$(cat /proc/fs/nfsd/threads)" = 0 ]; then
    # Numeric owners; and a block of 1 MiB, which the kernel would derive from the guest's small memory.
    echo 1 > /sys/module/nfsd/parameters/nfs4_disable_idmapping
    echo 1048576 > /proc/fs/nfsd/max_block_size
    echo 10 > /proc/fs/nfsd/nfsv4gracetime
    echo 10 > /proc/fs/nfsd/nfsv4leasetime
    # Without nfsdcld no client is recorded, and a restart would give nobody a grace period.
    pidof nfsdcld >/dev/null || nfsdcld -p /run/rpc_pipefs -s /var/lib/nfs/nfsdcld || fail "nfsdcld does not start"
    # insecure: slirp's source ports are high ones.
    exportfs -i -o rw,sync,insecure,no_root_squash,no_subtree_check,fsid=0 '*:/export' || fail "exportfs"
    pidof rpc.mountd >/dev/null || rpc.mountd --no-udp -N 2 -N 3 || fail "rpc.mountd does not start"
    rpc.nfsd -N 3 -V 4.1 -V 4.2 --rdma=20049 8 || fail "rpc.nfsd: exit $?"
  fi
  grep -q '^rdma 20049' /proc/fs/nfsd/portlist || fail "knfsd does not listen on RDMA: $(cat /proc/fs/nfsd/portlist)"
}

nfsd_stop() { [ ! -e /proc/fs/nfsd/threads ] || rpc.nfsd 0 || fail "knfsd does not stop"; }

nfsd() {
  case ${1:-start} in
    start) nfsd_start ;;
    stop) nfsd_stop ;;
    restart) nfsd_stop; nfsd_start ;;
    *) fail "nfsd $1?" ;;
  esac
}

siw() {
  case ${1:-} in stock | mended) ;; *) fail "siw stock or mended?" ;; esac
  [ "$(cat /run/siw-flavour 2>/dev/null)" != "$1" ] || return 0
  nfsd_stop
  have_link siw0 && rdma link delete siw0
  have_link siwlo && rdma link delete siwlo
  [ ! -d /sys/module/siw ] || rmmod siw || fail "siw is in use"
  echo "$1" > /run/siw-flavour
  nfsd_start
}

reset() {
  local where
  # The last mount first; what hangs is cut off, for its server may be gone.
  awk '$3 ~ /^(nfs4?|fuse.*)$/ {print $2}' /proc/mounts | tac | while read -r where; do
    umount "$where" 2>/dev/null || umount -f "$where" 2>/dev/null || umount -l "$where"
  done
  siw stock
  nfsd_start
  find /export -mindepth 1 -delete
  mkdir -p -m 1777 /export/pub && chmod 1777 /export/pub
}

report() {
  echo "== dmesg"; dmesg | tail -200
  echo "== rdma"; rdma link show; rdma resource show qp; rdma resource show cm_id
  echo "== nfsd"; cat /proc/fs/nfsd/portlist /proc/fs/nfsd/threads 2>/dev/null
  for f in /proc/fs/nfsd/clients/*/{info,states}; do [ -e "$f" ] && { echo "-- $f"; cat "$f"; }; done
  echo "== mounts"; grep -E ' (nfs4?|fuse\S*) ' /proc/mounts
  echo "== processes"; ps -eo pid,ppid,stat,wchan:20,args | grep -v '\]$'
  echo "== sockets"; ss -tanp | head -60
  echo "== trace"; tail -400 /sys/kernel/tracing/trace 2>/dev/null
}

verb=${1:-}
case $verb in
  nfsd | siw | reset | report) shift; "$verb" "$@" ;;
  *) fail "nfsd, siw, reset or report?" ;;
esac
