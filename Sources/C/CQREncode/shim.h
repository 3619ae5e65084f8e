/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libqrencode, which makes QR codes. */
#pragma once
#include <qrencode.h>
