# Runs every advised command in a guest. /out/advice/N has `steps` and `undo`, a command on each line, `probes`, which
# print the settings that the commands change, and `ports`, the names that they need. For each command a line is written to
# /out/results: number, user, part, position, status, and the last words of the error.
set -u

# What the packages hold belongs to root here, and sudo gets its right.
tar -C /out/packages -c . | tar -C / -x --keep-directory-symlink
if [ -e /usr/bin/sudo ]; then
  chown -R root:root /usr/bin/sudo /etc/sudoers /etc/sudoers.d /usr/libexec/sudo /usr/lib/sudo /etc/sudo.conf 2>/dev/null
  chmod 4755 /usr/bin/sudo
  chmod 440 /etc/sudoers
fi
# The right that its package gives to ping.
chmod -f 4755 /bin/ping
ldconfig
cp /out/linerate /usr/local/bin/linerate
echo '127.0.0.1 localhost vm' >/etc/hosts
echo 'plain:x:1000:1000::/tmp:/bin/sh' >>/etc/passwd
modprobe -a dummy veth bonding sch_cake sch_fq sch_fq_codel sch_netem sch_tbf tcp_bbr 2>/dev/null
# Debian's kernel begins with the queue that an advice sets.
echo pfifo_fast >/proc/sys/net/core/default_qdisc
mkdir -p /sys/fs/cgroup
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 c /sys/fs/cgroup
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
cards=$(for n in /sys/class/net/*; do
  case $(readlink "$n/device/driver") in *e1000e) basename "$n" ;; esac
done)
# Names of their own, which no command has.
number=0
for card in $cards; do
  ip link set "$card" down name "card$number"
  number=$((number + 1))
done
cards=$(for n in /sys/class/net/card*; do basename "$n"; done)
export LINERATE_OPEN=true
linerate serve --open >/dev/null 2>&1 &

# plant FILES...: a folder of the kernel's that has interrupts of these numbers.
interrupts() {
  mount -t tmpfs irq /proc/irq
  for n in $(seq 0 128); do
    mkdir "/proc/irq/$n"
    echo 0-3 >"/proc/irq/$n/smp_affinity_list"
  done
}

# ports FOLDER: a port of each name: the cards first, since they have what virtual ports lack.
ports() {
  local name card left=$cards
  while IFS= read -r name; do
    if grep -q 'type bond' "$1/steps"; then
      ip link add name "$name" type bond mode 802.3ad
    elif grep -q ' handle ' "$1/steps"; then
      ip link add name "$name" numtxqueues 2 type dummy
      tc qdisc add dev "$name" root handle 100: mq
      tc qdisc replace dev "$name" parent 100:1 handle 1: fq
      tc qdisc replace dev "$name" parent 100:2 handle 2: fq
    elif [ -n "$left" ]; then
      card=${left%%$'\n'*}
      left=${left#"$card"}
      left=${left#$'\n'}
      ip link set "$card" name "$name"
    else
      ip link add name "$name" type dummy
    fi
    ip link set "$name" up
    # A queue that the steps remove.
    grep -q 'tc qdisc del' "$1/steps" && tc qdisc add dev "$name" root netem loss 1%
  done <"$1/ports"
}

# The ports as they were.
unports() {
  local name card index=0
  while IFS= read -r name; do
    tc qdisc del dev "$name" root 2>/dev/null
    ip link set "$name" down
    ip link del "$name" 2>/dev/null && continue
    index=$((index + 1))
    card=$(echo "$cards" | sed -n "${index}p")
    ip link set "$name" name "$card"
  done <"$1/ports"
}

# Addresses and paths that the commands name.
world() {
  local word
  ip link set lo up
  for word in $(cat "$1/hosts"); do ip addr add "$word" dev lo 2>/dev/null; done
  for word in $(grep -oh '/sys/fs/cgroup/[^ ]*/cpu.max' "$1/steps" "$1/undo"); do 
    mkdir -p "${word%/cpu.max}"
    echo '50000 100000' >"$word"
  done
  for word in $(grep -ohE 'taskset -acp [0-9,-]* ?[0-9]+$' "$1/steps" | awk '{print $NF}' | sort -u); do
    kill -0 "$word" 2>/dev/null && continue
    echo $((word - 1)) >/proc/sys/kernel/ns_last_pid
    sleep 100000 &
  done
}

# as USER COMMAND: as a person of that name types it. Root's shell fails where a part of a pipeline does.
as() {
  local limit=60 apart=
  # A server has its port where no other one does.
  case $2 in *'linerate serve'*) limit=4 apart='unshare --net' ;; *linerate*) limit=4 ;; esac
  case $1 in
  root) timeout -k 1 $limit $apart bash -o pipefail -c "$2" ;;
  plain) timeout -k 1 $limit $apart setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/tmp sh -c "$2" ;;
  esac
}

declare -A seen
# commands N USER PART
commands() {
  local position=0 command words status
  while IFS= read -r command; do
    # For a user without rights a command ends in the same way each time.
    if [ "$2" = plain ]; then
      # Except where it needs the file of another one.
      case $command in *-before.*) ;; *) [ -z "${seen[$command]:-}" ] || { position=$((position + 1)) && continue; } ;; esac
      seen[$command]=1
    fi
    as "$2" "$command" >stdout 2>stderr </dev/null
    status=$?
    words=$(tr '\n\t' '  ' <stderr | tail -c 300)
    [ -n "$words" ] || words=$(tr '\n\t' '  ' <stdout | tail -c 300)
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$position" "$status" "$words" >>/out/results
    position=$((position + 1))
  done <"/out/advice/$1/$3"
}

# probe N NAME: the settings now.
probe() { bash "/out/advice/$1/probes" >"/out/advice/$1/$2" 2>/dev/null </dev/null; }

advice() {
  local folder=/out/advice/$1 place
  ports "$folder"
  world "$folder"
  grep -qE '/proc/irq/(\$|[0-9])' "$folder/steps" && ! grep -q 'msi_irqs' "$folder/steps" && interrupts
  place=$(mktemp -d) && chmod 777 "$place" && cd "$place" || exit 1
  commands "$1" plain steps
  commands "$1" plain undo
  cd / && rm -rf "$place" && mkdir "$place" && cd "$place" || exit 1
  # An old state that the commands know is established first.
  grep -q -- '-before[.]' "$folder/undo" || while IFS= read -r command; do
    as root "$command" >/dev/null 2>&1 </dev/null
  done <"$folder/undo"
  probe "$1" before
  commands "$1" root steps
  probe "$1" during
  commands "$1" root undo
  probe "$1" after
  cd /
  mountpoint -q /proc/irq && umount /proc/irq
  unports "$folder"
}

for n in $(ls /out/advice | sort -n); do
  advice "$n" >>/out/log 2>&1
done
