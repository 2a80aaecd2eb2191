#!/usr/bin/env bash
# TubeMQ's and RocketMQ's servers, and ZooKeeper, for tests against software that was not written here; ../README.md says more.
set -eu
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${ZK_PORT:=2181}"
: "${TUBE_MASTER_PORT:=8715}" "${TUBE_MASTER_WEB:=8080}" "${TUBE_MASTER_BDB:=9001}"
: "${TUBE_BROKER_ID:=1}" "${TUBE_BROKER_PORT:=8123}" "${TUBE_BROKER_WEB:=8081}"
: "${TUBE_MASTER_PROM:=9081}" "${TUBE_BROKER_PROM:=9082}"
: "${TUBE_META:=bdb}" "${TUBE_OFFSETS:=file}" "${TUBE_TOKEN:=abc}" "${TUBE_TOPICS:=demo:3}"
: "${MQ_NAMESRV_PORT:=9876}" "${MQ_BROKER_PORT:=10911}"

services="zookeeper tubemq-master tubemq-broker rocketmq-namesrv rocketmq-broker"

usage() {
    cat <<END
usage: interop.sh COMMAND
  fetch [PEER...]             download jars: zookeeper tubemq rocketmq
  start SERVICE...            and wait until it is ready; 'tubemq' and 'rocketmq' start both of their servers
  stop [SERVICE...]           last started first; all without arguments
  kill SERVICE...             SIGKILL, for crash tests
  status                      what runs, its pid and resident memory
  tube-api METHOD [QUERY]     one call of the TubeMQ master's HTTP API
  tube-topic NAME [PARTITIONS]  create a topic and wait until clients can use it
  mqadmin COMMAND...          RocketMQ's own admin tool
  drive PEER DRIVER ARG...    run PEER/DRIVER.java with the jars of that peer; TUBE_CLIENT=1.5.0 has them of that version
services: $services
END
}

start_zookeeper() {
    jars zookeeper
    render "$here/zookeeper/zoo.cfg.in" "$state/zookeeper/zoo.cfg" "DIR=$state/zookeeper" "PORT=$ZK_PORT"
    launch zookeeper "${ZK_HEAP:-128m}" "$state/lib/zookeeper/*" org.apache.zookeeper.server.ZooKeeperServerMain zoo.cfg
    await zookeeper port_open "$ZK_PORT"
}

# A RocketMQ broker needs jdk.internal.ref to recover after a crash; the others are opened as a precaution: brokers unmap
# their files by hand.
opens="--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/java.lang=ALL-UNNAMED"

start_tubemq_master() {
    local dir=$state/tubemq-master
    jars tubemq
    web_templates "$dir/resources"
    render "$here/tubemq/master-$TUBE_META.ini.in" "$dir/master.ini" "DIR=$dir" "TOKEN=$TUBE_TOKEN" "PORT=$TUBE_MASTER_PORT" \
        "WEB=$TUBE_MASTER_WEB" "PROM=$TUBE_MASTER_PROM" "BDB=$TUBE_MASTER_BDB" "ZK=$host:$ZK_PORT" "EXTRA=${TUBE_MASTER_EXTRA:-}"
    launch tubemq-master "${TUBE_MASTER_HEAP:-256m}" "$state/lib/tubemq/*" $opens "-Dlog4j2.configurationFile=$here/tubemq/log4j2.xml" \
        org.apache.inlong.tubemq.server.tools.MasterStartup -f master.ini
    await tubemq-master master_leads
}

# The HTTP API answers through page templates that no jar carries; the console's own pages are left out.
web_templates() {
    mkdir -p "$1/templates/screen" "$1/templates/layout"
    printf '$sb' >"$1/templates/screen/webapi.vm"
    printf '$screen_placeholder' >"$1/templates/layout/webapi.vm"
    printf 'resource.loader.file.path = %s\n' "$1/templates" >"$1/velocity.properties"
}

tube_api() { http_get "$TUBE_MASTER_WEB" "/webapi.htm?method=$1&${2:-}"; }
master_leads() { tube_api admin_query_cluster_default_setting | grep -q '"errCode":0'; }

# tube_change METHOD QUERY: a call that must succeed.
tube_change() {
    local answer; answer=$(tube_api "$1" "$2&createUser=interop&modifyUser=interop&confModAuthToken=$TUBE_TOKEN" | tail -n 1)
    case $answer in
        *'"success":false'*) die "$1: $answer" ;;
        *'"result":true'*) ;;
        *) die "$1: ${answer:-no answer}" ;;
    esac
}

start_tubemq_broker() {
    local dir=$state/tubemq-broker in_zk=false spec
    jars tubemq
    [ "$TUBE_OFFSETS" != zk ] || in_zk=true
    render "$here/tubemq/broker.ini.in" "$dir/broker.ini" "DIR=$dir" "ID=$TUBE_BROKER_ID" "PORT=$TUBE_BROKER_PORT" \
        "WEB=$TUBE_BROKER_WEB" "PROM=$TUBE_BROKER_PROM" "MASTER=$host:$TUBE_MASTER_PORT" "IN_ZK=$in_zk"
    if [ $in_zk = true ]; then
        render "$here/tubemq/broker-zk.ini.in" "$dir/zk.ini" "ZK=$host:$ZK_PORT"; cat "$dir/zk.ini" >>"$dir/broker.ini"
    fi
    # A broker may register only after the master knows its id and has been told to put it online.
    if ! tube_api admin_query_broker_run_status "brokerId=$TUBE_BROKER_ID" | grep -q '"count":1'; then
        tube_change admin_add_broker_configure "brokerId=$TUBE_BROKER_ID&brokerIp=$host&brokerPort=$TUBE_BROKER_PORT&brokerWebPort=$TUBE_BROKER_WEB&numPartitions=3&acceptPublish=true&acceptSubscribe=true&deletePolicy=delete,168h&unflushThreshold=1000&unflushInterval=10000"
        tube_change admin_online_broker_configure "brokerId=$TUBE_BROKER_ID"
        for spec in $TUBE_TOPICS; do tube_add_topic "${spec%%:*}" "${spec#*:}"; done
    fi
    launch tubemq-broker "${TUBE_BROKER_HEAP:-256m}" "$state/lib/tubemq/*" $opens "-Dlog4j2.configurationFile=$here/tubemq/log4j2.xml" \
        -XX:MaxDirectMemorySize=512m org.apache.inlong.tubemq.server.tools.BrokerStartup -f broker.ini
    await tubemq-broker broker_serves
}
broker_serves() { tube_api admin_query_broker_run_status "brokerId=$TUBE_BROKER_ID" | grep -q '"runStatus":"running","subStatus":"idle"'; }

# A filtered group reads flushed messages only, so the memory cache is flushed sooner than after the default 20 s.
tube_add_topic() {
    tube_change admin_add_new_topic_record "brokerId=$TUBE_BROKER_ID&topicName=$1&numPartitions=$2&numTopicStores=1&memCacheFlushIntvl=4000&acceptPublish=true&acceptSubscribe=true&deletePolicy=delete,168h"
}

tube_topic() {
    local name=$1 parts=${2:-3} begin=$SECONDS
    tube_add_topic "$name" "$parts"
    tube_change admin_reload_broker_configure "brokerId=$TUBE_BROKER_ID"
    until tube_api admin_query_topic_info "topicName=$name" | grep -q '"isSrvAcceptPublish":true,"isSrvAcceptSubscribe":true'; do
        [ $((SECONDS - begin)) -lt "$limit" ] || die "topic $name is not served after $limit s"
        sleep 0.5
    done
    echo "topic $name, $parts partitions, $((SECONDS - begin)) s"
}

start_rocketmq_namesrv() {
    local dir=$state/rocketmq-namesrv
    jars rocketmq
    rocketmq_home "$dir"
    printf 'listenPort=%s\n' "$MQ_NAMESRV_PORT" >"$dir/namesrv.conf"
    launch rocketmq-namesrv "${MQ_NAMESRV_HEAP:-128m}" "$state/lib/rocketmq/*" $opens "-Drocketmq.home.dir=$dir" "-Duser.home=$dir" \
        org.apache.rocketmq.namesrv.NamesrvStartup -c namesrv.conf
    await rocketmq-namesrv port_open "$MQ_NAMESRV_PORT"
}

start_rocketmq_broker() {
    local dir=$state/rocketmq-broker
    jars rocketmq
    rocketmq_home "$dir"
    render "$here/rocketmq/broker.conf.in" "$dir/broker.conf" "DIR=$dir" "PORT=$MQ_BROKER_PORT" "HA=$((MQ_BROKER_PORT + 1))" "NAMESRV=$host:$MQ_NAMESRV_PORT"
    launch rocketmq-broker "${MQ_BROKER_HEAP:-384m}" "$state/lib/rocketmq/*" $opens "-Drocketmq.home.dir=$dir" "-Duser.home=$dir" \
        -XX:MaxDirectMemorySize=512m org.apache.rocketmq.broker.BrokerStartup -c broker.conf
    await rocketmq-broker broker_routed
}
broker_routed() { port_open "$MQ_BROKER_PORT" && grep -q 'boot success' "$state/rocketmq-broker/out.log"; }

# Both servers insist on a logback file under their home.
rocketmq_home() {
    mkdir -p "$1/conf"
    for name in logback_namesrv logback_broker logback_tools; do cp "$here/rocketmq/logback.xml" "$1/conf/$name.xml"; done
}

mqadmin() {
    jars rocketmq
    rocketmq_home "$state/rocketmq-tools"
    "$java" -Xmx128m -cp "$state/lib/rocketmq/*" "-Drocketmq.home.dir=$state/rocketmq-tools" "-Duser.home=$state/rocketmq-tools" \
        $opens org.apache.rocketmq.tools.command.MQAdminStartup "$@"
}

drive() {
    local peer=$1 driver=$2 version= lib; shift 2
    [ "$peer" != tubemq ] || version=${TUBE_CLIENT:-}
    jars "$peer" "$version"
    lib=$state/lib/$peer${version:+-$version}
    compiled "$lib" "$here/$peer/$driver.java"
    exec "$java" -Xmx256m $opens -cp "$lib/classes:$lib/*" "-Duser.home=$state" "-Dinterop.log=${INTEROP_LOG:-off}" \
        "-Dlog4j2.configurationFile=$here/tubemq/log4j2.xml" -Drocketmq.client.logUseSlf4j=true "-Dlogback.configurationFile=$here/rocketmq/logback.xml" \
        "$driver" "$@"
}

# compiled LIB SOURCE: fills LIB/classes where it is older than the source; compiling costs more than most commands.
compiled() {
    local part=$1/classes-$$ stamp=$1/classes/.of-$(basename "$2")
    [ ! "$stamp" -nt "$2" ] || return 0
    mkdir -p "$part"
    "${java}c" -cp "$1/*" -d "$part" "$2" >&2 || die "$2 does not compile"
    touch "$part/.of-$(basename "$2")"
    mv -T "$part" "$1/classes" 2>/dev/null || { mv -f "$part"/* "$part"/.of-* "$1/classes/"; rm -rf "$part"; } # one of the same name is replaced at once
}

expand() {
    local name
    for name in "$@"; do
        case $name in
            rocketmq) echo rocketmq-namesrv rocketmq-broker ;;
            tubemq) echo tubemq-master tubemq-broker ;;
            *) case " $services " in *" $name "*) echo "$name" ;; *) die "unknown service $name; there are: $services" ;; esac ;;
        esac
    done
}

start() {
    local name names; names=$(expand "$@") || exit 1
    for name in $names; do
        if pid_of "$name" >/dev/null; then echo "$name runs already"; else "start_${name//-/_}"; fi
    done
}

stop() {
    local name names reversed=; names=$(expand "$@") || exit 1
    for name in $names; do reversed="$name $reversed"; done
    for name in $reversed; do halt "$name"; done
}

crash() {
    local name names; names=$(expand "$@") || exit 1
    for name in $names; do halt "$name" KILL; done
}

status() {
    local name pid
    for name in $services; do
        if pid=$(pid_of "$name"); then
            echo "$name pid $pid rss $(awk '/VmRSS/ {print int($2 / 1024)}' "/proc/$pid/status") MiB"
        else echo "$name -"; fi
    done
}

command=${1:-help}; [ $# -eq 0 ] || shift
mkdir -p "$state"
case $command in
    fetch) [ $# -gt 0 ] || set -- zookeeper tubemq rocketmq; for peer in "$@"; do jars "$peer"; done ;;
    start) start "$@" ;;
    stop) if [ $# -eq 0 ]; then stop $services; else stop "$@"; fi ;;
    kill) crash "$@" ;;
    status) status ;;
    tube-api) tube_api "$@" | tail -n 1; echo ;;
    tube-topic) tube_topic "$@" ;;
    mqadmin) mqadmin "$@" ;;
    drive) drive "$@" ;;
    help) usage ;;
    *) usage >&2; exit 2 ;;
esac
