import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.*;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.common.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * The official RocketMQ Java client as a command.
 *
 * <pre>
 *   RocketDriver produce     NAMESRV TOPIC GROUP COUNT [OPTION=VALUE...]
 *   RocketDriver transaction NAMESRV TOPIC GROUP COUNT [OPTION=VALUE...]
 *   RocketDriver push        NAMESRV TOPIC GROUP COUNT [OPTION=VALUE...]
 *   RocketDriver orderly     NAMESRV TOPIC GROUP COUNT [OPTION=VALUE...]
 *   RocketDriver lite        NAMESRV TOPIC GROUP COUNT [OPTION=VALUE...]
 *   RocketDriver request     NAMESRV TOPIC GROUP COUNT [OPTION=VALUE...]
 *   RocketDriver admin       NAMESRV TOPIC GROUP CALL [OPTION=VALUE...]
 * </pre>
 *
 * Prints one JSON object a line, then a summary.  With quiet=true produce and push print the summary alone, which then has seconds and
 * CPU seconds of the messages behind the first warm=N.  Exit status: 0 when COUNT messages went through, 3 when the time ended first, 1
 * on an error.
 */
public class RocketDriver {
    private static final Map<String, String> options = new HashMap<>();
    private static final AtomicInteger seen = new AtomicInteger();
    private static final AtomicInteger failed = new AtomicInteger();
    private static long deadline;
    private static String topic;
    private static String group;
    private static boolean quiet;
    private static int warm, limit;
    private static volatile long first, last, firstCpu, lastCpu;    // of the messages behind the warm ones; ns

    public static void main(String[] args) {
        List<String> words = new ArrayList<>();
        for (String arg : args) {
            int eq = arg.indexOf('=');
            if (eq > 0) options.put(arg.substring(0, eq), arg.substring(eq + 1));
            else words.add(arg);
        }
        deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(number("seconds", 120));
        int status = 1;
        try {
            status = run(words);
        } catch (Throwable problem) {
            print("event", "error", "type", problem.getClass().getName(), "text", String.valueOf(problem.getMessage()));
        }
        System.out.flush();
        Runtime.getRuntime().halt(status);
    }

    private static int run(List<String> words) throws Exception {
        String namesrv = words.get(1);
        topic = words.get(2);
        group = words.get(3);
        if (words.get(0).equals("admin")) {
            admin(namesrv, words.get(4));
            return 0;
        }
        int count = Integer.parseInt(words.get(4));
        limit = count;
        warm = (int) number("warm", 0);
        quiet = Boolean.parseBoolean(options.getOrDefault("quiet", "false"));
        switch (words.get(0)) {
            case "produce" -> {
                if (Boolean.parseBoolean(options.getOrDefault("async", "false"))) produceAsync(namesrv, count);
                else produce(namesrv, count);
            }
            case "transaction" -> transaction(namesrv, count);
            case "push" -> push(namesrv, count, false);
            case "orderly" -> push(namesrv, count, true);
            case "lite" -> lite(namesrv, count);
            case "request" -> request(namesrv, count);
            default -> throw new IllegalArgumentException("unknown command " + words.get(0));
        }
        if (quiet) print("event", "summary", "messages", seen.get(), "failed", failed.get(), "seconds", (last - first) / 1e9, "cpu", (lastCpu - firstCpu) / 1e9);
        else print("event", "summary", "messages", seen.get(), "failed", failed.get());
        return seen.get() >= count ? 0 : 3;
    }

    /** Options: prefix, tags (used in turn), keys, queue (fixed queue id), delay (level), batch (messages a call), pause (ms), hold (s). */
    private static void produce(String namesrv, int count) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(group);
        common(producer, namesrv);
        producer.start();
        int step = (int) number("batch", 1);
        for (int i = 0; i < count && !late(); i += step) {
            List<Message> pack = new ArrayList<>();
            for (int j = i; j < Math.min(count, i + step); j++) pack.add(message(j));
            try {
                SendResult result = step > 1 ? producer.send(pack) : one(producer, pack.get(0));
                seen.addAndGet(pack.size());
                sent(text(pack.get(0).getBody()), pack.size(), result);
            } catch (Exception problem) {
                failed.addAndGet(pack.size());
                print("event", "refused", "body", text(pack.get(0).getBody()), "text", String.valueOf(problem));
            }
            Thread.sleep(number("pause", 0));
        }
        Thread.sleep(1000 * number("hold", 0));             // stay connected, for the admin calls
        producer.shutdown();
    }

    /** Options: size (of the one body that is sent), window (messages without an answer), warm. */
    private static void produceAsync(String namesrv, int count) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(group);
        common(producer, namesrv);
        producer.start();
        byte[] body = "x".repeat((int) number("size", 100)).getBytes(StandardCharsets.UTF_8);
        int most = (int) number("window", 512);
        Semaphore window = new Semaphore(most);
        CountDownLatch open = new CountDownLatch(count);
        for (int i = 0; i < count && !late(); i++) {
            if (i == warm) {
                window.acquire(most);
                begin();
                window.release(most);
            }
            window.acquire();
            producer.send(new Message(topic, body), new SendCallback() {
                public void onSuccess(SendResult result) {
                    seen.incrementAndGet();
                    if (!quiet) sent("", 1, result);
                    end();
                }

                public void onException(Throwable problem) {
                    failed.incrementAndGet();
                    print("event", "refused", "text", String.valueOf(problem));
                    end();
                }

                private void end() {
                    window.release();
                    open.countDown();
                }
            });
        }
        open.await(Math.max(1, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
        last = System.nanoTime();
        lastCpu = cpu();
        producer.shutdown();
    }

    private static void begin() {
        first = System.nanoTime();
        firstCpu = cpu();
    }

    /** CPU time of this process, in ns. */
    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    private static SendResult one(DefaultMQProducer producer, Message message) throws Exception {
        if (!options.containsKey("queue")) return producer.send(message);
        int wanted = (int) number("queue", 0);
        return producer.send(message, (queues, m, arg) -> queues.stream().filter(q -> q.getQueueId() == wanted).findFirst().orElseThrow(), null);
    }

    /** Option outcome: commit, rollback, or unknown (the default), which is committed when the broker comes back to ask. */
    private static void transaction(String namesrv, int count) throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer(group);
        common(producer, namesrv);
        AtomicInteger checked = new AtomicInteger();
        producer.setTransactionListener(new TransactionListener() {
            public LocalTransactionState executeLocalTransaction(Message message, Object arg) {
                return switch (options.getOrDefault("outcome", "unknown")) {
                    case "commit" -> LocalTransactionState.COMMIT_MESSAGE;
                    case "rollback" -> LocalTransactionState.ROLLBACK_MESSAGE;
                    default -> LocalTransactionState.UNKNOW;
                };
            }

            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                checked.incrementAndGet();
                print("event", "checked", "body", text(message.getBody()), "transaction", message.getTransactionId());
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        for (int i = 0; i < count && !late(); i++) {
            SendResult result = producer.sendMessageInTransaction(message(i), null);
            seen.incrementAndGet();
            sent("" + options.getOrDefault("prefix", "m") + "-" + i, 1, result);
        }
        boolean asks = options.getOrDefault("outcome", "unknown").equals("unknown");
        while (asks && checked.get() < count && !late()) Thread.sleep(100);
        print("event", "checks", "count", checked.get());
        producer.shutdown();
    }

    /** Options: expression (tags), sql, model (clustering, broadcasting), fail (answer "later" this many times), hold (s). */
    private static void push(String namesrv, int count, boolean orderly) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        common(consumer, namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setMessageModel(options.getOrDefault("model", "clustering").equals("broadcasting") ? MessageModel.BROADCASTING : MessageModel.CLUSTERING);
        consumer.setPersistConsumerOffsetInterval(1000);
        if (options.containsKey("sql")) consumer.subscribe(topic, MessageSelector.bySql(options.get("sql")));
        else consumer.subscribe(topic, options.getOrDefault("expression", "*"));
        AtomicInteger fails = new AtomicInteger((int) number("fail", 0));
        if (orderly) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                if (fails.getAndDecrement() > 0) return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                messages.forEach(RocketDriver::received);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                if (fails.getAndDecrement() > 0) return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                messages.forEach(RocketDriver::received);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        while (seen.get() < count && !late()) Thread.sleep(50);
        Thread.sleep(1000 * number("hold", 0));
        consumer.shutdown();                                // also reports the offsets
    }

    /** Option seek (begin, end), applied before the first poll. */
    private static void lite(String namesrv, int count) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group);
        common(consumer, namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommit(false);
        if (options.containsKey("seek")) {
            consumer.start();
            Collection<MessageQueue> queues = consumer.fetchMessageQueues(topic);
            consumer.assign(queues);
            for (MessageQueue queue : queues) {
                if (options.get("seek").equals("end")) consumer.seekToEnd(queue);
                else consumer.seekToBegin(queue);
            }
        } else {
            consumer.subscribe(topic, options.getOrDefault("expression", "*"));
            consumer.start();
        }
        while (seen.get() < count && !late()) {
            consumer.poll(1000).forEach(RocketDriver::received);
            consumer.commitSync();
        }
        consumer.shutdown();
    }

    /** Sends requests, and answers them as a consumer of the group; what is printed is what came back. */
    private static void request(String namesrv, int count) throws Exception {
        DefaultMQProducer replier = new DefaultMQProducer(group + "_repliers");
        common(replier, namesrv);
        replier.start();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        common(consumer, namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                byte[] body = ("re: " + text(message.getBody())).getBytes(StandardCharsets.UTF_8);
                try {
                    SendResult result = replier.send(org.apache.rocketmq.client.utils.MessageUtil.createReplyMessage(message, body), 20000);
                    print("event", "replied", "status", result.getSendStatus().name(), "queue", result.getMessageQueue().getQueueId());
                } catch (Exception problem) {
                    print("event", "refused", "text", String.valueOf(problem));
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer asker = new DefaultMQProducer(group + "_askers");
        common(asker, namesrv);
        asker.start();
        for (int i = 0; i < count && !late(); i++) {
            Message reply = asker.request(message(i), 30000);
            seen.incrementAndGet();
            print("event", "reply", "body", text(reply.getBody()), "ofReplies", reply.getTopic().endsWith("_REPLY_TOPIC"));
        }
        Thread.sleep(1000);                                 // the last reply is still to be answered
        consumer.shutdown();
    }

    /** Calls: create (option queues), route, progress, consumers, producers, status, running, reset (option time: ms, default 0), query (options key, max), view and direct (options id, client). */
    private static void admin(String namesrv, String call) throws Exception {
        DefaultMQAdminExt tools = new DefaultMQAdminExt(number("rpc", 20000));
        common(tools, namesrv);
        tools.start();
        Object answer = switch (call) {
            case "create" -> {
                String broker = tools.examineBrokerClusterInfo().getBrokerAddrTable().values().iterator().next().selectBrokerAddr();
                var config = new org.apache.rocketmq.common.TopicConfig(topic);
                config.setReadQueueNums((int) number("queues", 4));
                config.setWriteQueueNums((int) number("queues", 4));
                tools.createAndUpdateTopicConfig(broker, config);
                yield "created";
            }
            case "route" -> tools.examineTopicRouteInfo(topic);
            case "progress" -> flat(tools.examineConsumeStats(group, topic).getOffsetTable());
            case "consumers" -> tools.examineConsumerConnectionInfo(group);
            case "producers" -> tools.examineProducerConnectionInfo(group, topic);
            case "status" -> nested(tools.getConsumeStatus(topic, group, options.getOrDefault("client", "")));
            case "running" -> flatRunning(tools, clientId(tools));
            case "reset" -> flat(tools.resetOffsetByTimestamp(topic, group, number("time", 0), true));
            case "query" -> tools.queryMessage(topic, options.get("key"), (int) number("max", 32), 0, Long.MAX_VALUE)
                    .getMessageList().stream().map(found -> text(found.getBody())).toList();
            case "view" -> text(tools.viewMessage(topic, options.get("id")).getBody());
            case "direct" -> tools.consumeMessageDirectly(group, clientId(tools), topic, options.get("id"));
            default -> throw new IllegalArgumentException("unknown call " + call);
        };
        print("event", call, "answer", answer);
        tools.shutdown();
    }

    private static String clientId(DefaultMQAdminExt tools) throws Exception {
        if (options.containsKey("client")) return options.get("client");
        return tools.examineConsumerConnectionInfo(group).getConnectionSet().iterator().next().getClientId();
    }

    private static Map<String, Object> flatRunning(DefaultMQAdminExt tools, String client) throws Exception {
        var info = tools.getConsumerRunningInfo(group, client, false);
        return Map.of("subscriptions", info.getSubscriptionSet(), "queues", flat(info.getMqTable()));
    }

    private static Map<String, Object> nested(Map<String, Map<MessageQueue, Long>> clients) {
        Map<String, Object> result = new TreeMap<>();
        clients.forEach((client, queues) -> result.put(client, flat(queues)));
        return result;
    }

    private static Map<String, Object> flat(Map<MessageQueue, ?> queues) {
        Map<String, Object> result = new TreeMap<>();
        queues.forEach((queue, value) -> result.put(queue.getTopic() + ":" + queue.getBrokerName() + ":" + queue.getQueueId(), value));
        return result;
    }

    private static void common(ClientConfig config, String namesrv) {
        config.setNamesrvAddr(namesrv);
        config.setVipChannelEnabled(false);
        config.setMqClientApiTimeout(20000);                // machines of tests are busy
        if (config instanceof DefaultMQProducer producer) producer.setSendMsgTimeout(20000);
        config.setHeartbeatBrokerInterval((int) number("heartbeat", 5000));
        config.setPollNameServerInterval((int) number("heartbeat", 5000));
        config.setInstanceName("driver-" + ProcessHandle.current().pid());
    }

    private static Message message(int i) {
        String[] tags = options.getOrDefault("tags", "").split(",");
        String body = options.getOrDefault("prefix", "m") + "-" + i;
        Message message = new Message(topic, tags[i % tags.length], options.getOrDefault("keys", ""), body.getBytes(StandardCharsets.UTF_8));
        if (options.containsKey("delay")) message.setDelayTimeLevel((int) number("delay", 1));
        message.putUserProperty("number", Integer.toString(i));
        return message;
    }

    private static void sent(String body, int count, SendResult result) {
        print("event", "sent", "body", body, "count", count, "status", result.getSendStatus().name(), "id", result.getMsgId(),
                "offsetId", result.getOffsetMsgId(), "queue", result.getMessageQueue().getQueueId(), "offset", result.getQueueOffset());
    }

    private static void received(MessageExt message) {
        int n = seen.incrementAndGet();
        if (n == warm + 1) begin();
        if (n == limit) {
            last = System.nanoTime();
            lastCpu = cpu();
        }
        if (quiet) return;
        print("event", "received", "body", text(message.getBody()), "topic", message.getTopic(), "queue", message.getQueueId(), "offset",
                message.getQueueOffset(), "tags", message.getTags(), "id", message.getMsgId(), "reconsumed", message.getReconsumeTimes(),
                "properties", new TreeMap<>(message.getProperties()));
    }

    private static String text(byte[] body) {
        return new String(body, StandardCharsets.UTF_8);
    }

    private static long number(String name, long otherwise) {
        return Long.parseLong(options.getOrDefault(name, Long.toString(otherwise)));
    }

    private static boolean late() {
        return System.nanoTime() > deadline;
    }

    private static synchronized void print(Object... pairs) {
        Map<String, Object> line = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) line.put((String) pairs[i], pairs[i + 1]);
        System.out.println(JSON.toJSONString(line, SerializerFeature.WriteNonStringKeyAsString, SerializerFeature.DisableCircularReferenceDetect));
    }
}
