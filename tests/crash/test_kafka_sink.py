"""Rows into a Kafka topic while weir and the broker are killed, the network is cut and owners are paused: a reader of
committed messages sees each row once, with its values."""

import json
import os
import shutil
import signal
import subprocess

import pytest
from broker import NAMED, SECONDS
from confluent_kafka.admin import ResourceType
from harness import is_stopped, wait_until
from kafka_proxy import END_TXN, INIT_PRODUCER_ID, PRODUCE, Proxy

ROWS = 1500
PACE = "task.read=sleep:2ms"


class Place:
    """A pipeline of a generator into a topic, run again and again until all is there."""

    def __init__(self, folder, weir, broker, more="", brokers=None, config="", topic=None, rows=ROWS, rate=5000):
        self.folder, self.weir, self.broker, self.rows = folder, weir, broker, rows
        self.topic = topic or broker.topic(3)
        config = f", config: {{{config}}}" if config else ""
        target = f"brokers: '{brokers or broker.brokers}', topic: {self.topic}, key: id, writers: 2{more}{config}"
        self.pipeline = folder / "p.yaml"
        self.pipeline.write_text(
            "pipeline: p\ncheckpoint: {interval: 10ms}\n"
            f"sources: {{numbers: {{type: generator, rows: {rows}, rate: {rate}, seed: 7, schema: {{id: int64, t: utf8}}}}}}\n"
            f"sinks: {{k: {{type: kafka, {target}}}}}\n"
        )

    def run(self, faults="", *arguments):
        return self.weir("run", "p.yaml", *arguments, faults=f"{faults},{PACE}", cwd=self.folder)

    def start(self, binary, faults="", *arguments):
        """Beside this test; its log is in file `log`."""
        with open(self.folder / "log", "w") as log:
            environment = {**os.environ, "WEIR_FAULTS": f"{faults},{PACE}"}
            return subprocess.Popen([binary, "run", "p.yaml", *arguments], stderr=log, stdout=log, cwd=self.folder, env=environment)

    def stop(self, binary, point):
        """A run that has stopped itself there."""
        process = self.start(binary, f"{point}=stop@1")
        wait_until(lambda: process.poll() is not None or is_stopped(process), point)
        assert process.returncode is None, self.log()
        return process

    def go_on(self, process):
        process.send_signal(signal.SIGCONT)
        return process.wait(SECONDS)

    def log(self):
        return (self.folder / "log").read_text()[-4000:]

    def messages(self):
        committed = self.broker.committed(self.topic, 3)
        found = [(message.key(), json.loads(message.value())) for message in committed.read()]
        committed.close()
        return found

    def check(self):
        found = self.messages()
        assert sorted(value["id"] for _, value in found) == list(range(self.rows))
        assert all(key == b"%d" % value["id"] for key, value in found)

    def finish(self):
        done = self.run()
        assert done.returncode == 0, done.stderr[-3000:]
        self.check()
        assert self.weir("verify", "p.yaml", cwd=self.folder).returncode == 0


@pytest.fixture
def place(tmp_path, weir_faults, broker):
    return Place(tmp_path, weir_faults, broker)


@pytest.mark.parametrize("point", ["txn.apply", "txn.prepared", "txn.commit", "txn.committed"])
def test_kill_and_failure_at(point, place):
    done = place.run(f"{point}=kill@1")
    assert done.returncode == -9, done.stderr[-3000:]
    done = place.run(f"{point}=fail@1,{point}=fail@2")
    assert done.returncode == 0, done.stderr[-3000:]
    place.finish()


# ---- the broker ------------------------------------------------------------------------------------------


def test_broker_killed_within_produce(tmp_path, weir_faults, weir_faults_bin, broker):
    """In the middle of pre_commit. tests/long has the commit."""
    broker_killed_within(PRODUCE, tmp_path, weir_faults, weir_faults_bin, broker)


def broker_killed_within(api, tmp_path, weir_faults, weir_faults_bin, broker):
    place = Place(tmp_path, weir_faults, broker, brokers=broker.proxied, rate=1000)
    with Proxy(broker, api, broker.kill, nth=2) as proxy:
        process = place.start(weir_faults_bin)
        wait_until(lambda: proxy.hit and proxy.dark_until or process.poll() is not None, "the kill")
        broker.start()
        assert process.wait(SECONDS) == 0, place.log()
        assert proxy.hit
        place.finish()


# ---- the network -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("api, what", [(PRODUCE, "answer_lost"), (END_TXN, "dropped"), (END_TXN, "answer_lost"), (END_TXN, "delayed")])
def test_network_cut_at(api, what, tmp_path, weir_faults, broker):
    """tests/long has the other requests."""
    cut_at(api, what, tmp_path, weir_faults, broker)


def cut_at(api, what, tmp_path, weir_faults, broker):
    place = Place(tmp_path, weir_faults, broker, brokers=broker.proxied, rows=400, rate=400)
    with Proxy(broker, api, what, nth=1 if api == INIT_PRODUCER_ID else 2) as proxy:
        done = place.run()
        assert proxy.hit and done.returncode == 0, done.stderr[-3000:]
        place.finish()


def test_transaction_expires_while_the_network_is_cut(tmp_path, weir_faults, broker):
    """librdkafka#3297: neither commit nor abort of it can succeed any more. The epoch is produced again."""
    place = Place(tmp_path, weir_faults, broker, brokers=broker.proxied, config="transaction.timeout.ms: 2000")
    with Proxy(broker, PRODUCE, "dropped", nth=3, dark=5.0) as proxy:
        done = place.run()
        assert proxy.hit and done.returncode == 0, done.stderr[-3000:]
        place.finish()


# ---- owners ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["txn.apply", "txn.prepared", "store.decide.after", "txn.commit"])
def test_paused_owner_is_fenced(point, place, weir_faults_bin):
    """It wakes up when another one, with a copy of its state, has delivered all, and adds nothing."""
    zombie = place.stop(weir_faults_bin, point)
    shutil.copytree(place.folder / "weir-state/p", place.folder / "copy")
    done = place.run("", "--set", "state=./copy")
    assert done.returncode == 0, done.stderr[-3000:]
    place.check()
    status = place.go_on(zombie)
    # An epoch that the other has published with the same bytes is delivered for the zombie too.
    assert status == 4 or (status == 0 and point in ("store.decide.after", "txn.commit")), place.log()
    place.check()


# ---- what brokers refuse ---------------------------------------------------------------------------------


def large(place, size):
    """A source of five rows, of which the third is of that size."""
    rows = [{"id": i, "t": "x" * (size if i == 2 else 1)} for i in range(5)]
    (place.folder / "rows.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = place.pipeline.read_text().splitlines()
    text[2] = "sources: {numbers: {type: file, path: rows.ndjson, schema: {id: int64, t: utf8}}}"
    place.pipeline.write_text("\n".join(text) + "\n")
    place.rows = 5


@pytest.mark.parametrize("known", ["client", "topic"])
def test_a_message_too_large(known, tmp_path, weir_faults, broker):
    """logstash-output-kafka#190. The client knows its own limit before the row is taken, so that the row may become a
    letter; the topic's is known when the broker answers, before the decision."""
    topic = broker.topic(3, **{"max.message.bytes": 1 << 20})
    place = Place(tmp_path, weir_faults, broker, topic=topic, config="" if known == "client" else "message.max.bytes: 8000000")
    large(place, 2 << 20)
    for _ in range(2):
        done = place.run()
        assert done.returncode == 6, done.stderr[-3000:]
        assert "sink k" in done.stderr and "row 2" in done.stderr and "its message of 2097" in done.stderr, done.stderr
        assert ("is larger than the client takes" in done.stderr) == (known == "client"), done.stderr
        assert f"topic {topic}" in done.stderr and place.messages() == []
    broker.configure(topic, **{"max.message.bytes": 8000000})
    if known == "client":
        place.pipeline.write_text(place.pipeline.read_text().replace("key: id", "key: id, config: {message.max.bytes: 8000000}"))
    done = place.run()
    assert done.returncode == 0, done.stderr[-3000:]
    place.check()


def test_a_cursor_topic_that_takes_small_records_alone(tmp_path, weir_faults, broker):
    """The positions come with the commit; that they fit is found before the decision."""
    cursors = broker.topic(1, **{"cleanup.policy": "compact", "max.message.bytes": 10000})
    place = Place(tmp_path, weir_faults, broker, more=f", cursor_topic: {cursors}")
    done = place.run()
    assert done.returncode == 1, done.stderr[-3000:]
    assert f"the cursor's record, which topic {cursors} does not take" in done.stderr
    assert "raise max.message.bytes of that topic" in done.stderr and place.messages() == []
    broker.configure(cursors, **{"max.message.bytes": 100000})
    place.finish()


def test_a_transaction_timeout_above_the_brokers(tmp_path, weir_faults, broker):
    done = Place(tmp_path, weir_faults, broker, config="transaction.timeout.ms: 2000000").run()
    assert done.returncode == 1, done.stderr[-3000:]
    assert "transaction.timeout.ms is above transaction.max.timeout.ms of the brokers" in done.stderr


# What docs/kafka.md says that a sink's user needs.
TOPIC, CURSORS, ID = "topic", "cursor topic", "transactional id"
RIGHTS = [(TOPIC, "WRITE"), (CURSORS, "READ"), (CURSORS, "WRITE"), (CURSORS, "CREATE"), (ID, "WRITE")]


@pytest.mark.parametrize("missing", [None, *RIGHTS])
def test_rights(missing, tmp_path, weir_faults, broker):
    """Just these, and it delivers; one of them less, and it says so before the decision."""
    place = Place(tmp_path, weir_faults, broker, brokers=broker.named, config=NAMED, rows=100)
    names = {TOPIC: (ResourceType.TOPIC, place.topic), CURSORS: (ResourceType.TOPIC, f"weir.{place.topic}.p.k")}
    names[ID] = (ResourceType.TRANSACTIONAL_ID, f"weir.{place.topic}.p.k")
    for on, right in RIGHTS:
        if (on, right) != missing:
            broker.allow(*names[on], right)
    done = place.run()
    if missing is None:
        assert done.returncode == 0, done.stderr[-3000:]
        place.check()
        return
    assert done.returncode == 1, done.stderr[-3000:]
    assert "uthorization failed" in done.stderr and place.messages() == []
    assert names[missing[0]][1] in done.stderr, done.stderr
    broker.allow(*names[missing[0]], missing[1])
    assert place.run().returncode == 0
    place.check()


def test_a_wrong_password(tmp_path, weir_faults, broker):
    done = Place(tmp_path, weir_faults, broker, brokers=broker.named, config=NAMED.replace("secret", "s3cr3t-%&-word")).run()
    assert done.returncode == 1, done.stderr[-3000:]
    assert "uthentication failed" in done.stderr and "s3cr3t" not in done.stderr


def test_another_deployment_is_refused(place):
    assert place.run("txn.commit=kill@1").returncode == -9
    done = place.run("", "--set", "state=./other")
    assert done.returncode in (3, 4), done.stderr[-3000:]
    assert "deployment" in done.stderr
    place.finish()


@pytest.mark.parametrize(
    "more, told",
    [
        (", config: {isolation.level: read_uncommitted}", "isolation.level is not for the user to set"),
        (", format: avro", "avro is not there yet"),
        (", format: arrow", "neither key nor headers"),
    ],
)
def test_options_that_are_refused(more, told, tmp_path, weir_faults, broker):
    done = Place(tmp_path, weir_faults, broker, more).run()
    assert done.returncode == 2, done.stderr[-3000:]
    assert told in done.stderr
