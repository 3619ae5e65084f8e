# SPDX-License-Identifier: Apache-2.0
"""Connects a consumer to a broker with paho-mqtt, version 1.6 or later.

client = mqtt.client("log")
client.tls_set("ca.pem", "log.pem", "log.key")
mqtt.run(client, "broker.example", 8883, consumer, handle=store)
"""

from __future__ import annotations

import importlib
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from ._consumer import Consumer
from ._news import News

#: Seconds.
_LONGEST_PAUSE = 60.0


def client(name: str, *, session: int = 86_400) -> Any:
    """A client of paho-mqtt with MQTT 5, whose session the broker keeps for so many seconds without a connection.

    Set user, password and TLS at it. Two programs with one name throw each other off the broker.
    """
    paho = importlib.import_module("paho.mqtt.client")
    versions = getattr(paho, "CallbackAPIVersion", None)
    made = paho.Client(*([versions.VERSION2] if versions else []), client_id=name, protocol=paho.MQTTv5)
    properties = importlib.import_module("paho.mqtt.properties").Properties
    made.badged_connect = properties(importlib.import_module("paho.mqtt.packettypes").PacketTypes.CONNECT)
    made.badged_connect.SessionExpiryInterval = session
    return made


def run(
    client: Any,
    host: str,
    port: int,
    consumer: Consumer,
    handle: Callable[[list[News]], None],
    *,
    keepalive: int = 60,
    log: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
) -> None:
    """Connects, subscribes, and gives what the consumer has learnt to `handle`; for ever, with pauses after failures.

    The broker gets its acknowledgement when `handle` has returned, so what is stored there is not lost. An exception of
    `handle` ends the run; restore the consumer from what is stored before the next one.
    """
    failures: list[str] = []

    def connected(client: Any, data: Any, flags: Any, code: Any, *more: Any) -> None:
        if code.is_failure if hasattr(code, "is_failure") else code.value >= 0x80:
            failures.append(f"the broker refuses the connection: {code}")
            return
        consumer.connected()
        client.subscribe(f"{consumer.prefix}/+/+", 1)

    def subscribed(client: Any, data: Any, number: Any, codes: Any, *more: Any) -> None:
        failures.extend(f"the broker refuses the subscription: {code}" for code in codes if code.value >= 0x80)

    def received(client: Any, data: Any, message: Any) -> None:
        expires = getattr(message.properties, "MessageExpiryInterval", None)
        if news := consumer.receive(message.topic, message.payload, expires=expires):
            handle(news)

    client.on_connect = connected
    client.on_subscribe = subscribed
    client.on_message = received
    attempts = 0
    while True:
        try:
            client.connect(host, port, keepalive, clean_start=False, properties=client.badged_connect)
            begun = time.monotonic()
            while not failures and (code := client.loop(_pause(client, consumer, keepalive))) == 0:
                if client.is_connected() and (news := consumer.tick()):
                    handle(news)
            reason = failures.pop() if failures else f"the connection to the broker has ended: error {code}"
            attempts = 0 if time.monotonic() - begun > 10 else attempts
        except OSError as error:
            reason = f"cannot connect to {host}: {error}"
        failures.clear()
        attempts += 1
        pause = random.uniform(0, min(_LONGEST_PAUSE, 2.0**attempts))
        log(f"{reason}; the next attempt is in {pause:.0f} s")
        time.sleep(pause)


def _pause(client: Any, consumer: Consumer, keepalive: int) -> float:
    """How long the loop may wait for a message: half a keep-alive, because it sends the ping. Without a connection
    nothing expires."""
    longest = keepalive / 2
    if consumer.deadline is None or not client.is_connected():
        return longest
    return max(0.0, min(longest, consumer.deadline - time.monotonic()))
