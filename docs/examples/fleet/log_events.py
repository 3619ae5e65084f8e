#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the events, holes and presence of a fleet into a SQLite database, by the rules of docs/fleet.md.

log_events.py DATABASE mqtts://HOST:PORT   from a broker, with the package paho-mqtt, until it is stopped
log_events.py DATABASE -                   lines `TOPIC PAYLOAD` of standard input, as `badged-mqtt --events` prints
"""

import argparse
import json
import os
import sqlite3
import sys
import time
import urllib.parse

from badged import fleet

SCHEMA = """
CREATE TABLE IF NOT EXISTS events(host, stream, epoch, sequence, time, received, boot, uptime, content,
    PRIMARY KEY(host, stream, epoch, sequence)) WITHOUT ROWID;
-- Events with numbers that did not come.
CREATE TABLE IF NOT EXISTS holes(host, stream, epoch, first, last, reason, PRIMARY KEY(host, stream, epoch, first)) WITHOUT ROWID;
-- Events without numbers that were lost; `missed` is NULL where nobody knows how many.
CREATE TABLE IF NOT EXISTS losses(host, stream, epoch, sequence, reason, missed, since, until);
CREATE TABLE IF NOT EXISTS presence(host, received, online, session, reason);
CREATE TABLE IF NOT EXISTS documents(host, kind, received, content, PRIMARY KEY(host, kind)) WITHOUT ROWID;
-- In a boot, uptime + offset is the time.
CREATE TABLE IF NOT EXISTS clocks(host, boot, offset, PRIMARY KEY(host, boot)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS faults(host PRIMARY KEY, received, topic, text) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS progress(host PRIMARY KEY, content) WITHOUT ROWID;

CREATE VIEW IF NOT EXISTS log AS SELECT host, stream, epoch, sequence, coalesce(uptime + offset, time) AS time, received,
    content FROM events LEFT JOIN clocks USING (host, boot);
CREATE VIEW IF NOT EXISTS hosts AS SELECT presence.host, max(presence.rowid) AS change, online, reason,
    presence.received, json_extract(content, '$.version') AS version, json_extract(content, '$.badgedVersion') AS badged,
    json_extract(content, '$.settings') AS settings, json_extract(content, '$.packages') AS packages, content
    FROM presence LEFT JOIN documents ON documents.host = presence.host AND kind = 'state' GROUP BY presence.host;
CREATE VIEW IF NOT EXISTS readers AS SELECT host, json_extract(value, '$.name') AS name,
    json_extract(value, '$.driver') AS driver, json_extract(value, '$.card.kind') AS card, value AS content
    FROM documents, json_each(content, '$.readers') WHERE kind = 'readers';
"""


class Log:
    def __init__(self, path):
        self.database = sqlite3.connect(path, isolation_level=None)
        # An event is acknowledged to the broker when it is on the disk.
        self.database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;" + SCHEMA)
        self.consumer = fleet.Consumer()
        for host, content in self.database.execute("SELECT host, content FROM progress").fetchall():
            # What cannot be used is told, and replaced by a new beginning.
            if news := self.consumer.restore(host, content):
                self.store(news)
                print(f"{host}: {news[0].text}", file=sys.stderr)

    def store(self, news):
        """Writes the news and where the consumer is, in one transaction."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            for one in news:
                self.write(one)
            for host in {one.host for one in news if not isinstance(one, fleet.Malformed)}:
                self.run("INSERT OR REPLACE INTO progress VALUES (?, ?)", host, json.dumps(self.consumer.save(host)))
            self.database.execute("COMMIT")
        except BaseException:
            self.database.execute("ROLLBACK")
            raise

    def run(self, statement, *values):
        self.database.execute(statement, values)

    def write(self, one):
        now = time.time_ns() // 1_000_000
        match one:
            case fleet.Arrival():
                self.run("INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", one.host, one.stream, one.epoch,
                         one.sequence, one.time, now, one.boot, one.uptime, json.dumps(one.content))
            case fleet.Hole():
                self.run("INSERT OR REPLACE INTO holes VALUES (?, ?, ?, ?, ?, ?)", one.host, one.stream, one.epoch,
                         one.first, one.last, one.reason)
            case fleet.Withdrawn(hole=hole):
                self.run("DELETE FROM holes WHERE (host, stream, epoch, first) = (?, ?, ?, ?)", hole.host, hole.stream,
                         hole.epoch, hole.first)
            case fleet.Loss():
                self.run("INSERT INTO losses VALUES (?, ?, ?, ?, ?, ?, ?, ?)", one.host, one.stream, one.epoch,
                         one.sequence, one.reason, one.missed, one.since, one.until)
            case fleet.Presence():
                self.run("INSERT INTO presence VALUES (?, ?, ?, ?, ?)", one.host, now, one.is_online, one.session,
                         one.reason)
            case fleet.Document(content=None):
                self.run("DELETE FROM documents WHERE (host, kind) = (?, ?)", one.host, one.kind)
            case fleet.Document():
                self.run("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)", one.host, one.kind, now,
                         json.dumps(one.content))
            case fleet.Clock():
                self.run("INSERT OR REPLACE INTO clocks VALUES (?, ?, ?)", one.host, one.boot, one.offset)
            case fleet.Reset():
                self.run("INSERT OR REPLACE INTO faults VALUES (?, ?, ?, ?)", one.host, now, "", one.text)
            case fleet.Malformed():
                self.run("INSERT OR REPLACE INTO faults VALUES (?, ?, ?, ?)", one.host, now, one.topic, one.text)


def read_lines(log, lines):
    news = []
    for line in lines:
        topic, _, payload = line.rstrip("\n").partition(" ")
        news += log.consumer.receive(topic, payload)
        if len(news) >= 1000:
            log.store(news)
            news = []
    log.store(news)


def read_broker(log, arguments):
    from badged.fleet import mqtt

    url = urllib.parse.urlsplit(arguments.source)
    client = mqtt.client(arguments.name)
    if url.scheme == "mqtts":
        client.tls_set(arguments.ca, arguments.certificate, arguments.key)
    if url.username:
        client.username_pw_set(urllib.parse.unquote(url.username), os.environ.get("MQTT_PASSWORD"))
    mqtt.run(client, url.hostname, url.port or (8883 if url.scheme == "mqtts" else 1883), log.consumer, log.store)


def main():
    parser = argparse.ArgumentParser(description="Writes what the hosts of a fleet publish into a SQLite database.")
    parser.add_argument("database")
    parser.add_argument("source", help="mqtts://HOST:PORT, mqtt://USER@HOST:PORT (MQTT_PASSWORD is the password), or -")
    parser.add_argument("--name", default="log", help="the session at the broker")
    parser.add_argument("--ca", help="authorities of the broker in PEM; by default those of the system")
    parser.add_argument("--certificate", help="certificate of this program in PEM")
    parser.add_argument("--key")
    arguments = parser.parse_args()
    log = Log(arguments.database)
    if arguments.source == "-":
        read_lines(log, sys.stdin)
    else:
        read_broker(log, arguments)


if __name__ == "__main__":
    main()
