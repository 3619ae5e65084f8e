/* SPDX-License-Identifier: GPL-3.0-or-later
 * A reader driver for pcscd that passes each request over a Unix socket to a test. The test simulates the reader, its
 * keypad and the card. DEVICENAME in reader.conf is the path of that socket.
 *
 * Each reader has two connections. The driver begins each of them with one byte that says which one it is:
 *   'C' commands. Request: operation (1), number (4), length (4), data. Answer: IFD code (4), length (4), data.
 *       Numbers are big-endian. One request at a time, each is answered.
 *   'E' events. The test writes a byte whenever the card was inserted or removed, and pcscd asks at once.
 * When the test closes the connection, the reader is gone. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ifdhandler.h>

enum operation { PRESENCE = 1, POWER = 2, TRANSMIT = 3, CONTROL = 4 };

struct reader {
    int commands, events;
    int stop[2]; /* a pipe: pcscd wants its waiting thread back */
    pthread_mutex_t lock;
    UCHAR atr[MAX_ATR_SIZE];
    DWORD atr_length;
};

/* The upper half of a Lun is the number of the reader; each has one slot. */
enum { READERS = 16 };
static struct reader readers[READERS];

static struct reader *reader_of(DWORD lun) {
    DWORD index = lun >> 16;
    return index < READERS && readers[index].commands > 0 ? &readers[index] : NULL;
}

static int send_all(int fd, const void *data, size_t length) {
    const char *bytes = data;
    while (length > 0) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        bytes += n, length -= (size_t)n;
    }
    return 0;
}

static int receive_all(int fd, void *data, size_t length) {
    char *bytes = data;
    while (length > 0) {
        ssize_t n = recv(fd, bytes, length, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        bytes += n, length -= (size_t)n;
    }
    return 0;
}

static void put32(uint8_t *to, uint32_t number) {
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(number >> (24 - 8 * i));
}

static uint32_t get32(const uint8_t *from) {
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* Asks the test; *answer_length is the room for the answer, and then its length. */
static RESPONSECODE ask(struct reader *reader, enum operation operation, uint32_t number, const void *data,
                        uint32_t length, void *answer, DWORD *answer_length) {
    uint8_t head[9] = {(uint8_t)operation};
    put32(head + 1, number);
    put32(head + 5, length);
    DWORD room = *answer_length;
    *answer_length = 0;
    RESPONSECODE code = IFD_NO_SUCH_DEVICE;
    pthread_mutex_lock(&reader->lock);
    uint8_t reply[8];
    if (send_all(reader->commands, head, sizeof head) == 0 && send_all(reader->commands, data, length) == 0
        && receive_all(reader->commands, reply, sizeof reply) == 0) {
        uint32_t size = get32(reply + 4);
        if (size > room) {
            /* The rest of the answer would be taken for the next answer, so the connection ends. */
            shutdown(reader->commands, SHUT_RDWR);
            code = IFD_ERROR_INSUFFICIENT_BUFFER;
        } else if (receive_all(reader->commands, answer, size) == 0) {
            *answer_length = size;
            code = (RESPONSECODE)get32(reply);
        }
    }
    pthread_mutex_unlock(&reader->lock);
    return code;
}

static int dial(const char *path, char role) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return -1;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 || send_all(fd, &role, 1) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

RESPONSECODE IFDHCreateChannelByName(DWORD lun, LPSTR name) {
    if (lun >> 16 >= READERS) return IFD_COMMUNICATION_ERROR;
    struct reader *reader = &readers[lun >> 16];
    memset(reader, 0, sizeof *reader);
    pthread_mutex_init(&reader->lock, NULL);
    if (pipe2(reader->stop, O_CLOEXEC | O_NONBLOCK) != 0) return IFD_COMMUNICATION_ERROR;
    reader->events = dial(name, 'E');
    reader->commands = dial(name, 'C');
    return reader->events > 0 && reader->commands > 0 ? IFD_SUCCESS : IFD_NO_SUCH_DEVICE;
}

RESPONSECODE IFDHCreateChannel(DWORD lun, DWORD channel) {
    (void)lun, (void)channel;
    return IFD_NOT_SUPPORTED;
}

RESPONSECODE IFDHCloseChannel(DWORD lun) {
    struct reader *reader = reader_of(lun);
    if (!reader) return IFD_COMMUNICATION_ERROR;
    close(reader->commands), close(reader->events), close(reader->stop[0]), close(reader->stop[1]);
    reader->commands = 0;
    return IFD_SUCCESS;
}

/* pcscd's thread for this reader waits here for the card to come or go, at most so many milliseconds. */
static RESPONSECODE wait_for_event(DWORD lun, int timeout) {
    struct reader *reader = reader_of(lun);
    if (!reader) return IFD_COMMUNICATION_ERROR;
    struct pollfd fds[] = {{.fd = reader->events, .events = POLLIN}, {.fd = reader->stop[0], .events = POLLIN}};
    if (poll(fds, 2, timeout) < 0) return IFD_COMMUNICATION_ERROR;
    char bytes[64];
    while (read(reader->stop[0], bytes, sizeof bytes) > 0) {}
    if (fds[0].revents && recv(reader->events, bytes, sizeof bytes, MSG_DONTWAIT) == 0) return IFD_NO_SUCH_DEVICE;
    return IFD_SUCCESS;
}

static RESPONSECODE stop_waiting(DWORD lun) {
    struct reader *reader = reader_of(lun);
    if (reader && write(reader->stop[1], "", 1) < 0 && errno != EAGAIN) return IFD_COMMUNICATION_ERROR;
    return IFD_SUCCESS;
}

RESPONSECODE IFDHGetCapabilities(DWORD lun, DWORD tag, PDWORD length, PUCHAR value) {
    struct reader *reader = reader_of(lun);
    RESPONSECODE (*waiter)(DWORD, int) = wait_for_event;
    RESPONSECODE (*stopper)(DWORD) = stop_waiting;
    UCHAR number;
    const void *from = &number;
    DWORD size = 1;
    switch (tag) {
    case TAG_IFD_ATR:
        if (!reader) return IFD_COMMUNICATION_ERROR;
        from = reader->atr, size = reader->atr_length;
        break;
    case TAG_IFD_SLOTS_NUMBER: number = 1; break;
    case TAG_IFD_SIMULTANEOUS_ACCESS: number = READERS; break;
    case TAG_IFD_THREAD_SAFE: number = 1; break;
    case TAG_IFD_SLOT_THREAD_SAFE: number = 0; break;
    case TAG_IFD_POLLING_THREAD_KILLABLE: number = 0; break;
    case TAG_IFD_POLLING_THREAD_WITH_TIMEOUT: from = &waiter, size = sizeof waiter; break;
    case TAG_IFD_STOP_POLLING_THREAD: from = &stopper, size = sizeof stopper; break;
    default: return IFD_ERROR_TAG;
    }
    if (*length < size) return IFD_ERROR_INSUFFICIENT_BUFFER;
    memcpy(value, from, size);
    *length = size;
    return IFD_SUCCESS;
}

RESPONSECODE IFDHSetCapabilities(DWORD lun, DWORD tag, DWORD length, PUCHAR value) {
    (void)lun, (void)tag, (void)length, (void)value;
    return IFD_NOT_SUPPORTED;
}

RESPONSECODE IFDHSetProtocolParameters(DWORD lun, DWORD protocol, UCHAR flags, UCHAR pts1, UCHAR pts2, UCHAR pts3) {
    (void)lun, (void)protocol, (void)flags, (void)pts1, (void)pts2, (void)pts3;
    return IFD_SUCCESS;
}

RESPONSECODE IFDHPowerICC(DWORD lun, DWORD action, PUCHAR atr, PDWORD atr_length) {
    struct reader *reader = reader_of(lun);
    if (!reader) return IFD_COMMUNICATION_ERROR;
    UCHAR answer[MAX_ATR_SIZE];
    DWORD length = sizeof answer;
    RESPONSECODE code = ask(reader, POWER, (uint32_t)action, NULL, 0, answer, &length);
    if (atr_length) *atr_length = 0;
    if (code != IFD_SUCCESS || action == IFD_POWER_DOWN) return code;
    memcpy(reader->atr, answer, length);
    reader->atr_length = length;
    if (atr && atr_length) memcpy(atr, answer, length), *atr_length = length;
    return IFD_SUCCESS;
}

RESPONSECODE IFDHTransmitToICC(DWORD lun, SCARD_IO_HEADER send_header, PUCHAR command, DWORD command_length,
                               PUCHAR answer, PDWORD answer_length, PSCARD_IO_HEADER receive_header) {
    (void)receive_header;
    struct reader *reader = reader_of(lun);
    if (!reader) return IFD_COMMUNICATION_ERROR;
    uint32_t protocol = (uint32_t)send_header.Protocol;
    return ask(reader, TRANSMIT, protocol, command, (uint32_t)command_length, answer, answer_length);
}

RESPONSECODE IFDHControl(DWORD lun, DWORD function, PUCHAR input, DWORD input_length, PUCHAR answer, DWORD answer_room,
                         LPDWORD answer_length) {
    struct reader *reader = reader_of(lun);
    *answer_length = 0;
    if (!reader) return IFD_COMMUNICATION_ERROR;
    DWORD length = answer_room;
    RESPONSECODE code = ask(reader, CONTROL, (uint32_t)function, input, (uint32_t)input_length, answer, &length);
    *answer_length = length;
    return code;
}

RESPONSECODE IFDHICCPresence(DWORD lun) {
    struct reader *reader = reader_of(lun);
    if (!reader) return IFD_COMMUNICATION_ERROR;
    UCHAR nothing;
    DWORD length = sizeof nothing;
    return ask(reader, PRESENCE, 0, NULL, 0, &nothing, &length);
}
