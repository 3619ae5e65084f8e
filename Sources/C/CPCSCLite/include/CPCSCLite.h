/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once
#include <PCSC/winscard.h>
#include <PCSC/reader.h>
