"""What cannot work is refused before any task starts, with one clear error."""

import http.server
import json
import socket
import threading

import pytest
from pyspark.errors import AnalysisException


@pytest.fixture
def df(spark):
    return spark.range(3).selectExpr("cast(id as string) as value")


@pytest.fixture
def no_tasks(spark):
    """Check that no job was started."""
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    yield
    assert set(tracker.getJobIdsForGroup()) == before


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bathcBytes": "1KiB"}, ["'bathcBytes'", "'batchBytes'"]),
        ({"target": "tpc://127.0.0.1:1"}, ["'tpc'"]),
        ({"target": "tcp://127.0.0.1:99999"}, ["99999"]),
        ({"target": "tcp://no-such-host.invalid:46801", "connectCheck": "fail"}, ["no-such-host.invalid"]),
        ({"groupId": "a&b"}, ["'a&b'", "'&'"]),
        ({"streamId": "s=1"}, ["'s=1'"]),
        ({"linger": "5 parsecs"}, ["linger", "'5 parsecs'"]),
    ],
)
def test_bad_options(df, sink, options, words):
    with pytest.raises(AnalysisException) as caught:
        sink.write(df, **options)
    for word in words:
        assert word.lower() in str(caught.value).lower()


@pytest.mark.usefixtures("no_tasks")
def test_an_unknown_column(df, sink):
    with pytest.raises(AnalysisException, match="column 'valeu' is unknown to the sink; did you mean 'value'"):
        sink.write(df.selectExpr("value", "value as valeu"))


@pytest.mark.usefixtures("no_tasks")
def test_a_column_of_the_wrong_type(df, sink):
    with pytest.raises(AnalysisException, match="column 'value' has type bigint, the sink takes string or binary"):
        sink.write(df.selectExpr("cast(value as bigint) as value"))


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(("missing", "column"), [("groupId", "group_id"), ("streamId", "stream_id")])
def test_no_group_or_stream(df, sink, missing, column):
    with pytest.raises(AnalysisException, match=f'set the option "{missing}" or add a column "{column}"'):
        sink.write(df, without=(missing,))


@pytest.mark.usefixtures("no_tasks")
def test_nobody_listens(df, sink):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(AnalysisException, match=f"no proxy can be reached from the driver: 127.0.0.1:{port}"):
            sink.write(df, target=f"tcp://127.0.0.1:{port}", connectCheck="fail")


def test_overwrite(df, sink):
    with pytest.raises(AnalysisException, match=r'use mode\("append"\)'):
        df.write.format("dataproxy").mode("overwrite").options(**sink.options).save()


def test_the_default_mode_is_refused_by_spark(df, sink):
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        df.write.format("dataproxy").options(**sink.options).save()


def test_a_path_has_no_meaning(df, sink):
    with pytest.raises(AnalysisException, match="the write was given the path '/data'; the sink takes no path"):
        df.write.format("dataproxy").mode("append").options(**sink.options).save("/data")


class Manager(http.server.BaseHTTPRequestHandler):
    """Counts the questions and names one proxy, if it knows the group."""

    proxy = ""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.do_GET()

    def do_GET(self):
        self.server.asked.append(self.path)
        host, _, port = self.proxy.partition(":")
        node = {"id": 1, "ip": host, "port": int(port), "protocolType": "TCP", "nodeLoad": 0}
        data = {"clusterId": 1, "isIntranet": 1, "isSwitch": 0, "load": 20, "maxPacketLength": -1, "nodeList": [node]}
        answer = {"success": True, "errMsg": None, "data": data}
        if "unknown" in self.path:
            answer = {"success": False, "errMsg": "who is that", "data": None}
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


@pytest.fixture
def manager(hub):
    """Return the URL of a Manager that knows the hub, and the list of the questions it was asked."""
    kind = type("OneManager", (Manager,), {"proxy": hub.target.removeprefix("tcp://")})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", server.asked
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("no_tasks")
def test_a_group_that_the_manager_refuses(df, sink, manager):
    url, asked = manager
    with pytest.raises(AnalysisException, match="who is that"):
        sink.write(df, target=url, groupId="unknown")
    assert len(asked) == 1


@pytest.mark.usefixtures("no_tasks")
def test_a_manager_that_cannot_be_reached(df, sink):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(AnalysisException, match=url):
            sink.write(df, target=url)


@pytest.mark.usefixtures("no_tasks")
def test_no_secret_is_shown(spark, df, sink):
    options = {**sink.options, "managerSecretId": "me", "dataproxy.manager_secret_key": "hush-hush"}
    listed = ", ".join(f"'{name}' '{value}'" for name, value in options.items())
    df.createOrReplaceTempView("secret_source")
    spark.sql(f"create or replace temporary view secret_sink (value string) using dataproxy options ({listed})")
    with pytest.raises(AnalysisException) as caught:  # Spark's own error, with its plan and the options in it
        sink.write(spark.sql("select make_interval(1) as value"), **options)
    assert "managersecretid=***" in str(caught.value).lower()
    shown = str(caught.value)
    texts = [spark.sql("explain extended insert into secret_sink select * from secret_source").first()[0], shown]
    for wrong in ({"lingr": "1s"}, {"managerSecretKee": "hush-hush"}, {"linger": "hush"}):
        with pytest.raises(AnalysisException) as caught:
            sink.write(df, **{**options, **wrong})
        texts.append(str(caught.value))
    ui = spark._jsparkSession.sharedState().statusStore().executionsList()
    shown = [ui.apply(number) for number in range(ui.size())]
    texts += [text for one in shown for text in (one.description(), one.details(), one.physicalPlanDescription())]
    assert "AppendData" in texts[0]
    assert not [text for text in texts if "hush-hush" in text]


def test_the_manager_is_asked_once_however_many_tasks_there_are(spark, sink, manager):
    url, asked = manager
    df = spark.range(0, 100, 1, 8).selectExpr("cast(id as string) as value")
    assert sink.write(df, target=url)["acked"] == 100
    assert len(asked) == 1
    assert len(sink.bodies()) == 100


def test_the_hubs_own_manager_will_do(spark, sink, hub):
    df = spark.range(10).selectExpr("cast(id as string) as value")
    assert sink.write(df, target=hub.manager_url)["acked"] == 10


def test_a_manager_needs_a_group(df, sink, manager):
    url, asked = manager
    with pytest.raises(AnalysisException, match="the groups are in a column"):
        sink.write(df.selectExpr("value", "'g' as group_id"), without=("groupId",), target=url)
    assert asked == []
