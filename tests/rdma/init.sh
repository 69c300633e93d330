#!/bin/busybox sh
# The guest's first process: loads the modules, mounts the host's / as a read-only root, runs guest.sh
# in it, and turns the machine off. The share `out` returns guest.sh's output.
box=/bin/busybox
$box mount -t proc proc /proc; $box mount -t sysfs sysfs /sys; $box mount -t devtmpfs dev /dev
for module in $($box cat /modules/order); do $box insmod /modules/$module || echo "insmod $module failed"; done
share="trans=virtio,version=9p2000.L,msize=1048576"
$box mount -t 9p -o $share,ro,cache=loose host /root || { echo "no root"; $box poweroff -f; }
for folder in tmp run mnt; do $box mount -t tmpfs tmpfs /root/$folder; done
$box mkdir -p /root/mnt/out /root/mnt/checkout
$box mount -t 9p -o $share,rw out /root/mnt/out
$box mount -t 9p -o $share,ro,cache=loose checkout /root/mnt/checkout
$box mount -t proc proc /root/proc; $box mount -t sysfs sysfs /root/sys; $box mount --move /dev /root/dev
$box mkdir -p /root/dev/shm; $box mount -t tmpfs tmpfs /root/dev/shm
$box chroot /root /bin/bash /mnt/checkout/tests/rdma/guest.sh > /root/mnt/out/log 2>&1 < /root/dev/null
echo $? > /root/mnt/out/status
$box sync; $box poweroff -f
