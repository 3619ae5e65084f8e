/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <libwebsockets.h>

/* lws_write wants so many bytes of room in front; a macro with a cast, which Swift does not see. */
static const int cwebsockets_room = LWS_PRE;
