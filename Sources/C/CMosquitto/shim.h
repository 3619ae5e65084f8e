/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libmosquitto, the client library of the broker mosquitto. */
#pragma once
#include <mosquitto.h>
#include <mqtt_protocol.h>
