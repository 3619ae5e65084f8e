# SPDX-License-Identifier: Apache-2.0
"""What the hosts of a fleet publish with badged-mqtt, by the rules of docs/fleet.md.

    from badged import fleet

    consumer = fleet.Consumer()
    for news in consumer.receive("badged/1/door-7/credential", payload):
        match news:
            case fleet.Arrival():
                print(news.host, news.content["reader"], news.content.get("id"))
            case fleet.Hole():
                print(news.host, "lost", news.count, "events:", news.reason)

`Consumer` takes messages from any MQTT library. `badged.fleet.mqtt` connects it to paho-mqtt. Nothing here needs
badged, or a package beside the standard library.
"""

from ._consumer import DOCUMENTS, STREAMS, Consumer
from ._news import Arrival, Clock, Document, Hole, Loss, Malformed, News, Presence, Reset, Withdrawn

__all__ = [
    "DOCUMENTS",
    "STREAMS",
    "Arrival",
    "Clock",
    "Consumer",
    "Document",
    "Hole",
    "Loss",
    "Malformed",
    "News",
    "Presence",
    "Reset",
    "Withdrawn",
]
