#!/bin/bash
# Runs in the guest: creates a Soft-RoCE device, then tests the collective and trainings over its rc
# queue pairs. Fails if the device did not carry their packets.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
modules=/mnt/checkout/$HEARTH_BUILD/hearth
port=/sys/class/infiniband/rxe0/ports/1
# Programs find their libraries by the checkout's path, which may be below /tmp.
[ -d "$HEARTH_CHECKOUT" ] || { mkdir -p "$HEARTH_CHECKOUT" && mount --bind /mnt/checkout "$HEARTH_CHECKOUT"; }

ulimit -l unlimited
ip link set lo up
ip link add v0 type veth peer name v1
for nic in v0 v1; do ip link set $nic mtu 9000 up; done
ip addr add 10.77.0.1/24 dev v0
rdma link add rxe0 type rxe netdev v0 || exit 1
until grep -q ACTIVE $port/state; do sleep 0.1; done
echo "guest: $(uname -r), $(rdma link)"

packets() { cat $port/hw_counters/sent_pkts; }
# check NAME PACKETS MODULE FILTER [SECONDS]: these tests must pass within SECONDS, and must send at
# least PACKETS packets through the device.
check() {
  local before; before=$(packets)
  local start=$SECONDS
  timeout ${5:-300} "$modules/$3/hearth_$3_test" --gtest_brief=1 --gtest_filter="$4" || { echo "$1: failed"; exit 1; }
  local sent=$(($(packets) - before))
  echo "$1: $sent packets by RDMA in $((SECONDS - start)) s"
  ((sent >= $2)) || { echo "$1: fewer than $2 packets: something else carried the messages"; exit 1; }
}

# On Soft-RoCE, UCX before 1.18 drops all packets of ud queue pairs, which set up the rc ones.
export UCX_UD_VERBS_ETH_DGID_CHECK=n UCX_NET_DEVICES=rxe0:1
export HEARTH_TEST_UCX_TLS=rc_verbs,ud_verbs
if [ "$HEARTH_SUITE" = whole ]; then
  check 'the whole suite' 10000 collective '*Conformance*/Ucx*:*Failures*/Ucx*' 3000
  exit 0
fi
# Only a few of each suite, because a group takes seconds to connect on emulated processors. The whole
# suite runs over UCX's tcp in `make test`, and in this guest in `make soak-rdma`.
check operations 500 collective '*Conformance.AllReduceSumsFloat32/Ucx2:*Conformance.AllGather*/Ucx3'
check failures 10 collective '*/Failures.APeerThatLeaves*/Ucx'
check choice 10 collective 'Transport.BetweenHostsIsRdmaByADevice'

# Ranks on one host use RDMA only if asked to.
export HEARTH_TRANSPORT=rdma UCX_TLS=$HEARTH_TEST_UCX_TLS OMP_NUM_THREADS=1
check 'LeNet on two ranks' 1000 trainer 'ExactnessTest.LeNetOnTwoRanksEqualsOneProcess'
check 'a killed rank' 30 trainer 'TrainerFaultsTest.AKilledPeerIsReportedWithItsRankWithinASecond'
