/* SPDX-License-Identifier: GPL-3.0-or-later
 * Makes a write to a closed pipe or socket an error in every test, before the first of them runs. */
#pragma once
#include <spawn.h>
#include <stddef.h>

void ctestsupport_link(void);
/* posix_spawn_file_actions_addclosefrom_np, which Swift does not see. */
int ctestsupport_close_from(posix_spawn_file_actions_t *actions, int lowest);
/* Keeps the calling thread, and what it starts, on the first processor that it may use. 0, or -1 with errno. */
int ctestsupport_keep_to_one_processor(void);
/* Lets it use all of them again. */
void ctestsupport_use_all_processors(void);
/* Makes a pair of connected Unix sockets whose peer has this number of supplementary groups, from 100000 on. Needs root. */
int ctestsupport_pair_in_groups(int pair[2], int count);
/* Bytes that malloc has given out and not got back. */
size_t ctestsupport_heap_in_use(void);
/* memmem(3), which Swift does not see; a search in memory in Swift takes a thousand times as long. */
int ctestsupport_contains(const void *bytes, size_t count, const void *wanted, size_t wanted_count);
/* Attacks on other processes with calls that Swift does not see. Each returns whether it worked. */
int ctestsupport_fork(void);
int ctestsupport_exec(void);
int ctestsupport_own(int socket, int victim);
int ctestsupport_trace(int victim);
int ctestsupport_limit(int victim);
int ctestsupport_unshare(void);
int ctestsupport_read_memory(int victim);
int ctestsupport_memory_file(void);
int ctestsupport_io_uring(void);
/* Waits until the process, which need not be a child, has ended. */
void ctestsupport_wait_for_end(int process);
/* Sends a descriptor twice in one message: SCM_RIGHTS. */
int ctestsupport_pass_twice(int socket, int fd);
