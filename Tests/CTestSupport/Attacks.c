/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CTestSupport.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

int ctestsupport_fork(void) {
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    return child > 0;
}

int ctestsupport_exec(void) {
    char *words[] = {"/bin/false", NULL};
    return execv(words[0], words) == 0;
}

/* The kernel sends SIGIO to the owner of a descriptor, or another signal that F_SETSIG names. */
int ctestsupport_own(int socket, int victim) {
    int works = fcntl(socket, F_SETOWN, victim) == 0;
    fcntl(socket, F_SETOWN, 0);
    return works;
}

int ctestsupport_trace(int victim) {
    if (ptrace(PTRACE_SEIZE, victim, 0, 0) != 0) return 0;
    /* Only a stopped process can be released. */
    ptrace(PTRACE_INTERRUPT, victim, 0, 0);
    waitpid(victim, NULL, 0);
    ptrace(PTRACE_DETACH, victim, 0, 0);
    return 1;
}

int ctestsupport_limit(int victim) {
    struct rlimit limit;
    return prlimit(victim, RLIMIT_NOFILE, NULL, &limit) == 0;
}

int ctestsupport_unshare(void) { return unshare(CLONE_NEWUTS) == 0; }

int ctestsupport_read_memory(int victim) {
    /* The address may be free in the victim, which is no refusal, so this attack is not certain. */
    char byte;
    struct iovec ours = {&byte, 1}, its = {&byte, 1};
    return process_vm_readv(victim, &ours, 1, &its, 1, 0) == 1;
}

int ctestsupport_memory_file(void) {
    int file = memfd_create("x", MFD_CLOEXEC);
    return file >= 0 && close(file) == 0;
}

int ctestsupport_io_uring(void) {
    char parameters[256] = {0};
    long ring = syscall(SYS_io_uring_setup, 1, parameters);
    return ring >= 0 && close((int)ring) == 0;
}
