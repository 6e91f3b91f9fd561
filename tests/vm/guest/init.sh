#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Process 1 of the guest, on the host's root file system seen through a tmpfs overlay.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
hostname nfsrdma-guest
ulimit -l unlimited  # as on machines with RDMA; siw honours the limit for root too

mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for dir in /dev/shm /run /tmp /var/lib/nfs /mnt; do
  mkdir -p "$dir" && mount -t tmpfs tmpfs "$dir"
done
chmod 1777 /tmp
mount -t configfs configfs /sys/kernel/config 2>/dev/null
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null

# After the tmpfs mounts: a build or a clone below /tmp would be hidden by them.
while read -r tag path; do
  mkdir -p "$path" && mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,ro,cache=none "$tag" "$path" ||
    echo "init: $path is not mounted"
done < /vm/mounts

ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2

python3 -S -u /vm/guest/agent.py </dev/null >/dev/ttyS0 2>&1 &
while :; do wait -n || sleep 3600; done
