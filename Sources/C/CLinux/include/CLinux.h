/* SPDX-License-Identifier: GPL-3.0-or-later
  * Functions of Linux and glibc that `import Glibc` does not provide: _GNU_SOURCE calls, macros, variadic functions.
  * Each function makes one call and no decisions. The header includes no system header that changes with _GNU_SOURCE,
  * because two definitions of one type in one program do not compile. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of the programs: digits and dots, and what dpkg sorts before or after a release. `make` links that of the
 * commit in its place (packaging/version). */
const char *badged_version(void);

/* epoll: events are bits of these constants. Hang-up and error are reported without being requested. */
extern const uint32_t CLINUX_EPOLLIN, CLINUX_EPOLLOUT, CLINUX_EPOLLHUP, CLINUX_EPOLLERR, CLINUX_EPOLLET;
enum clinux_epoll_operation { CLINUX_EPOLL_ADD, CLINUX_EPOLL_MODIFY, CLINUX_EPOLL_REMOVE };
struct clinux_epoll_event { uint32_t events; uint64_t token; };
int clinux_epoll_create(void);
int clinux_epoll_control(int epoll, enum clinux_epoll_operation operation, int fd, uint32_t events, uint64_t token);
/* Returns at most 64 events. Waits without a limit if the timeout is -1. epoll_pwait2(2), or epoll_wait(2) with whole
 * milliseconds. */
int clinux_epoll_wait(int epoll, struct clinux_epoll_event *events, int capacity, int64_t timeout_us);

/* Whether the kernel says that the clock is synchronised. adjtimex(2) */
int clinux_clock_is_synchronised(void);

/* Makes a non-blocking timer of CLOCK_REALTIME: timerfd_create(2). */
int clinux_clock_timer(void);
/* Sets the timer to a time in seconds since 1970; 0 stops it. It can also be read, with ECANCELED, when the clock was
 * set: timerfd_settime(2). */
int clinux_set_clock_timer(int timer, int64_t seconds);

/* Makes a non-blocking eventfd. */
int clinux_eventfd(void);
/* Blocks signals in the calling thread and in threads made later. Returns a descriptor that reports the signals. */
int clinux_signalfd(const int *signals, int count);
/* Returns the next signal number of that descriptor, or -1. */
int clinux_signalfd_read(int fd);

/* Calls accept4 with SOCK_NONBLOCK and SOCK_CLOEXEC. */
int clinux_accept(int fd);
/* Reads the credentials of the process at the other end of a Unix socket: SO_PEERCRED. */
int clinux_peer_credentials(int fd, int32_t *pid, uint32_t *uid, uint32_t *gid);
/* Reads the supplementary groups of that process: SO_PEERGROUPS. Returns their number, or -1 on error. */
int clinux_peer_groups(int fd, uint32_t *groups, int capacity);

/* Gives freed memory back to the kernel: malloc_trim(3). */
void clinux_give_back_memory(void);
/* Unmaps the text and constants of this program: madvise(2), MADV_DONTNEED. What is used again is mapped again, from the
   kernel's cache of files. Breakpoints that a debugger has set before are lost. */
void clinux_give_back_text(void);

/* Brings everything of a file system to the disk: syncfs(2). */
int clinux_sync_file_system(int fd);

int clinux_set_thread_name(const char *name);
int clinux_open(const char *path, int flags, unsigned mode);
int clinux_set_nonblocking(int fd);
int clinux_set_cloexec(int fd);
/* Sets PR_SET_DUMPABLE to 0: no core file, and no ptrace by the same user. */
int clinux_no_core_dumps(void);
/* Read and drop a capability of the calling thread; threads that it starts later inherit the result: capget(2) and
 * capset(2). */
int clinux_has_capability(unsigned capability);
int clinux_drop_capability(unsigned capability);
/* Adds an action of posix_spawn that closes every descriptor from lowest on. `actions` is a
 * posix_spawn_file_actions_t. */
int clinux_spawn_close_from(void *actions, int lowest);

/* Opens a non-blocking socket at which the kernel answers questions about sockets: NETLINK_SOCK_DIAG, sock_diag(7). */
int clinux_open_diagnosis(void);
/* Reads the user of the process that has this end of a TCP connection of this computer from such a socket.
 * Addresses have 4 or 16 bytes. Returns -1 if no process has the socket any more, because the kernel
 * reports root for such a socket. */
int clinux_tcp_owner(int diagnosis, int is_ipv6, const uint8_t *own, uint16_t own_port, const uint8_t *other,
                     uint16_t other_port, uint32_t *uid);
/* Reads the address and the port of the other end of a TCP connection. Returns the size of the address, 4 or 16; -1 for
 * another kind of socket. */
int clinux_tcp_peer(int fd, uint8_t address[16], uint16_t *port);

/* Opens a serial line: 8 bits, no parity, one stop bit, no echo, non-blocking, for this process alone. With rs485 the
 * driver switches the direction of the line. Returns -1 with errno; ENOTTY: the path is no serial line. termios(3) */
int clinux_open_serial(const char *path, unsigned baud, int rs485);
/* Changes the rate of a serial line. */
int clinux_set_baud(int fd, unsigned baud);

/* Takes a line of a GPIO chip as an output that is off. Returns its descriptor, or -1 with errno. gpio-v2-get-line-ioctl(2) */
int clinux_open_gpio(const char *chip, unsigned line);
int clinux_set_gpio(int line, int is_on);

/* Returns the version of Landlock in the kernel; 0 without Landlock, or if this process may not use it. landlock(7). */
int clinux_landlock_version(void);
/* Makes a set of rules that allows no access to files. Returns its descriptor. */
int clinux_landlock_create(void);
enum clinux_file_right { CLINUX_MAY_READ, CLINUX_MAY_WRITE, CLINUX_MAY_CREATE };
/* Allows opening a file, or everything below a folder, for reading, for writing as well, or for creating, renaming and
   removing files as well. */
int clinux_landlock_allow(int ruleset, const char *path, enum clinux_file_right right);
/* Gives up every other access for the calling thread and threads that it starts later. */
int clinux_landlock_restrict(int ruleset);

/* Returns a descriptor of a child, which never refers to a later process with the same id: pidfd_open(2); -1 if it has
   ended and its id is free. */
int clinux_open_child(int pid);
int clinux_kill_process(int pidfd);
/* Waits for the end of a child. Then its id is free. */
int clinux_wait_for_child(int pidfd);

/* Sends a descriptor and at most 64 bytes to the process at the other end of a Unix socket: SCM_RIGHTS. */
int clinux_pass_descriptor(int socket, int fd, const uint8_t *note, int note_count);
/* Does the same with a datagram to an address. */
struct sockaddr;
int clinux_pass_descriptor_to(int socket, int fd, const uint8_t *note, int note_count, const struct sockaddr *address,
                              unsigned size);
/* Returns the next received descriptor and its bytes. Returns -1 if there is none yet, -2 at the end of the connection,
 * and -3 for a message of bytes alone. When a message has several descriptors, all are closed and the result is -2. */
int clinux_take_descriptor(int socket, uint8_t note[64], int *note_count);

/* Sets TCP_QUICKACK. The kernel resets this option, so call this before each read. */
int clinux_tcp_quickack(int fd);
int clinux_tcp_nodelay(int fd);

/* Passes jobs of Swift tasks and actors without an executor to sink instead of the pool of the runtime. Call this
 * before the first task. The hook of the runtime is swift_task_enqueueGlobal_hook. */
void clinux_take_global_jobs(void (*sink)(void *job));
/* Whether the runtime has passed a job since then. */
bool clinux_has_taken_global_job(void);
/* Runs such a job on the calling thread. */
void clinux_run_global_job(void *job);

/* Opens a non-blocking socket on HCI_CHANNEL_CONTROL, with the definitions of the headers of libbluetooth. Returns -1 and
   sets errno if the kernel refuses. The kernel checks CAP_NET_ADMIN here; the socket keeps the right after the process
   drops the capability. */
int clinux_open_bluetooth_control(void);
/* Returns whether a descriptor is a Bluetooth socket. */
int clinux_is_bluetooth(int fd);
