/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The headers of libpcsclite include each other without their folder. */
#include <PCSC/pcsclite.h>
