/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <libwebsockets.h>

/* The number of free bytes that lws_write requires before the data. Swift cannot import a macro with a cast. */
static const int cwebsockets_room = LWS_PRE;
