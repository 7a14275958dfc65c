# Disks with planted faults, in a virtual machine with the setup `DISKS`. All that was made goes when the script ends.

group=/sys/fs/cgroup/disks
beside=

trap gone EXIT
gone() {
  set +e
  [ -z "$beside" ] || { kill $beside && wait $beside; }
  [ ! -e $group ] || { echo $$ >/sys/fs/cgroup/cgroup.procs && rmdir $group; }
  umount /run/data
  for disk in /dev/md?*; do [ ! -b $disk ] || mdadm --quiet --stop $disk; done
  for disk in /sys/class/block/dm-*/dm/name; do [ ! -e $disk ] || dmsetup remove --noudevsync "$(cat $disk)"; done
  for disk in /dev/loop?*; do [ ! -b $disk ] || losetup -d $disk; done
  rmdir /sys/kernel/config/nullb/*/
} 2>/run/gone

# disk NAME ATTRIBUTE=VALUE...: /dev/NAME, by null_blk: 1 GiB, without memory.
disk() {
  local name=$1 pair
  shift
  mkdir /sys/kernel/config/nullb/$name
  for pair in size=1024 "$@" power=1; do
    echo ${pair#*=} >/sys/kernel/config/nullb/$name/${pair%%=*}
  done
  until [ -b /dev/$name ]; do sleep 0.1; done
}

# late NAME ATTRIBUTE=VALUE...: such a disk, each of whose requests takes 20 ms. Timers of an emulated machine are too
# coarse for less.
late() { disk "$@" irqmode=2 completion_nsec=20000000; }

# queue DISK FILE VALUE: a setting of its queue.
queue() { echo "$3" >/sys/block/$1/queue/$2; }

# mapped TARGET DISK ARGUMENT...: /dev/dm-0, all of the disk by a target of the device mapper.
mapped() {
  local target=$1 sectors
  sectors=$(blockdev --getsz $2)
  shift 2
  dmsetup create --noudevrules --noudevsync mapped --uuid "$(echo $target | tr a-z A-Z)-mapped" --table "0 $sectors $target $*"
  until [ -b /dev/dm-0 ]; do sleep 0.1; done
}

# raid LEVEL OPTION...: /dev/md0, of three small disks with memory.
raid() {
  local level=$1 name
  shift
  for name in a b c; do disk $name size=192 memory_backed=1; done
  MDADM_NO_UDEV=1 mdadm --quiet --create /dev/md0 --run --assume-clean --level=$level --raid-devices=3 "$@" \
    /dev/a /dev/b /dev/c
}

# ext4 DISK OPTION...: a file system, at /run/data. Nothing is written later but what is asked for: it has no journal,
# unless an option says so.
ext4() {
  local disk=$1
  shift
  mke2fs -q -t ext4 -O ^has_journal -E nodiscard,lazy_itable_init=0 -N 64 "$@" $disk
  mkdir -p /run/data
  mount $disk /run/data
}

# limit DISK KEY=VALUE...: the control group of this script may do so much on the disk.
limit() {
  local number
  number=$(cat /sys/block/$1/dev)
  shift
  mount -t cgroup2 c /sys/fs/cgroup
  echo +io >/sys/fs/cgroup/cgroup.subtree_control
  mkdir $group
  echo $$ >$group/cgroup.procs
  echo "$number $*" >$group/io.max
}

# beside COMMAND...: it runs until the script ends.
beside() {
  "$@" >/run/beside 2>&1 </dev/null &
  beside=$!
}
