/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CTPM.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <tss2/tss2_esys.h>
#include <unistd.h>

/* The functions of libtss2-esys in use, with their types from tss2_esys.h. */
#define FUNCTIONS(f)                                                                                                   \
    f(Esys_Initialize) f(Esys_Finalize) f(Esys_Free) f(Esys_CreatePrimary) f(Esys_Create) f(Esys_Load) f(Esys_Sign)    \
    f(Esys_Unseal) f(Esys_StartAuthSession) f(Esys_TRSess_SetAttributes) f(Esys_FlushContext)

static struct {
#define FIELD(name) __typeof__(&name) name;
    FUNCTIONS(FIELD)
#undef FIELD
} esys;

static const char *failure;
static char failure_words[256];

static void load(void) {
    void *library = dlopen("libtss2-esys.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        snprintf(failure_words, sizeof failure_words, "%s", dlerror());
        failure = failure_words;
        return;
    }
#define FIND(name)                                                                                                     \
    if (!failure && !(esys.name = (__typeof__(&name))dlsym(library, #name))) failure = "libtss2-esys.so.0 has no " #name;
    FUNCTIONS(FIND)
#undef FIND
}

const char *ctpm_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return failure;
}

/* MARK: The connection */

/* libtss2 has transports (TCTI) of its own, but those for sockets wait for an answer without a timeout. */
struct ctpm {
    TSS2_TCTI_CONTEXT_COMMON_V1 way; /* first, because libtss2 passes a pointer to it */
    int descriptor;
    int64_t end; /* CLOCK_MONOTONIC in milliseconds */
    enum ctpm_end fault;
    /* The buffer of libtss2, which holds each command and then its answer. */
    uint8_t *memory;
    size_t memory_size;
    ESYS_CONTEXT *esys;
    ESYS_TR parent;
};

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* After a fault nothing more is sent, so a late answer is not taken for the answer to a later command. */
static TSS2_RC fail(ctpm *tpm, enum ctpm_end fault) {
    tpm->fault = fault;
    return TSS2_TCTI_RC_IO_ERROR;
}

static TSS2_RC wait_for(ctpm *tpm, short events) {
    struct pollfd item = {tpm->descriptor, events, 0};
    for (;;) {
        int64_t rest = tpm->end - now();
        if (rest <= 0) return fail(tpm, CTPM_LATE);
        int count = poll(&item, 1, rest < 3600000 ? (int)rest : 3600000);
        if (count > 0) return TSS2_RC_SUCCESS;
        if (count < 0 && errno != EINTR) return fail(tpm, CTPM_GONE);
    }
}

static TSS2_RC transmit(TSS2_TCTI_CONTEXT *context, size_t size, const uint8_t *command) {
    ctpm *tpm = (ctpm *)context;
    if (tpm->fault) return TSS2_TCTI_RC_IO_ERROR;
    for (size_t done = 0; done < size;) {
        TSS2_RC code = wait_for(tpm, POLLOUT);
        if (code) return code;
        /* send fails with ENOTSOCK for a device. Unlike write it raises no SIGPIPE. */
        ssize_t count = send(tpm->descriptor, command + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == ENOTSOCK) count = write(tpm->descriptor, command + done, size - done);
        if (count < 0 && errno != EINTR && errno != EAGAIN) return fail(tpm, CTPM_GONE);
        if (count > 0) done += (size_t)count;
    }
    return TSS2_RC_SUCCESS;
}

/* The header of an answer: tag, size, code. TPM 2.0 Library, part 1, 18.2. */
enum { header = 10 };

static TSS2_RC receive(TSS2_TCTI_CONTEXT *context, size_t *size, uint8_t *response, int32_t timeout) {
    ctpm *tpm = (ctpm *)context;
    (void)timeout; /* libtss2 sets no timeout; `end` limits the wait */
    if (tpm->fault) return TSS2_TCTI_RC_IO_ERROR;
    if (!response) { /* libtss2 asks for the size of the answer */
        *size = TPM2_MAX_RESPONSE_SIZE;
        return TSS2_RC_SUCCESS;
    }
    if (*size < header) return TSS2_TCTI_RC_INSUFFICIENT_BUFFER;
    tpm->memory = response;
    tpm->memory_size = *size;
    size_t done = 0, wanted = header;
    while (done < wanted) {
        TSS2_RC code = wait_for(tpm, POLLIN);
        if (code) return code;
        ssize_t count = read(tpm->descriptor, response + done, *size - done);
        if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) return fail(tpm, CTPM_GONE);
        if (count > 0) done += (size_t)count;
        if (done < header) continue;
        wanted = (size_t)response[2] << 24 | response[3] << 16 | response[4] << 8 | response[5];
        if (wanted < header || wanted > *size || done > wanted) return fail(tpm, CTPM_MALFORMED);
    }
    *size = wanted;
    return TSS2_RC_SUCCESS;
}

/* Opens a device, or connects to a socket. A socket serves one client at a time. If its queue stays full for the given
   time, errno is EAGAIN. */
static int open_way(const char *path, int64_t milliseconds) {
    struct stat state;
    if (stat(path, &state)) return -1;
    if (!S_ISSOCK(state.st_mode)) return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    /* SO_SNDTIMEO is also the timeout of connect(2). */
    const struct timeval limit = {milliseconds / 1000, milliseconds % 1000 * 1000};
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    int result;
    do {
        result = connect(descriptor, (struct sockaddr *)&address, sizeof address);
    } while (result && errno == EINTR);
    if (result) {
        int reason = errno;
        close(descriptor);
        errno = reason;
        return -1;
    }
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
    return descriptor;
}

uint32_t ctpm_probe(const char *path) {
    int descriptor = open_way(path, 1);
    if (descriptor < 0) return errno == EAGAIN ? CTPM_OK : CTPM_GONE; /* the queue is full, so a program listens */
    close(descriptor);
    return CTPM_OK;
}

/* MARK: Objects */

static uint32_t end(const ctpm *tpm, TSS2_RC code) { return code && tpm->fault ? tpm->fault : code; }

static void flush(ctpm *tpm, ESYS_TR *handle) {
    if (*handle != ESYS_TR_NONE) esys.Esys_FlushContext(tpm->esys, *handle);
    *handle = ESYS_TR_NONE;
}

/* Objects have no password, so the lockout after wrong passwords does not apply to them (noDA). */
static const TPMA_OBJECT common =
    TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT | TPMA_OBJECT_USERWITHAUTH | TPMA_OBJECT_NODA;

static TPM2B_PUBLIC curve_key(TPMA_OBJECT attributes) {
    TPM2B_PUBLIC key = {0};
    key.publicArea.type = TPM2_ALG_ECC;
    key.publicArea.nameAlg = TPM2_ALG_SHA256;
    key.publicArea.objectAttributes = common | TPMA_OBJECT_SENSITIVEDATAORIGIN | attributes;
    key.publicArea.parameters.eccDetail.symmetric.algorithm = TPM2_ALG_NULL;
    key.publicArea.parameters.eccDetail.scheme.scheme = TPM2_ALG_NULL;
    key.publicArea.parameters.eccDetail.curveID = TPM2_ECC_NIST_P256;
    key.publicArea.parameters.eccDetail.kdf.scheme = TPM2_ALG_NULL;
    return key;
}

static TPM2B_PUBLIC signing_key(void) {
    TPM2B_PUBLIC key = curve_key(TPMA_OBJECT_SIGN_ENCRYPT);
    key.publicArea.parameters.eccDetail.scheme.scheme = TPM2_ALG_ECDSA;
    key.publicArea.parameters.eccDetail.scheme.details.ecdsa.hashAlg = TPM2_ALG_SHA256;
    return key;
}

static TPM2B_PUBLIC sealed_data(void) {
    TPM2B_PUBLIC data = {0};
    data.publicArea.type = TPM2_ALG_KEYEDHASH;
    data.publicArea.nameAlg = TPM2_ALG_SHA256;
    data.publicArea.objectAttributes = common;
    data.publicArea.parameters.keyedHashDetail.scheme.scheme = TPM2_ALG_NULL;
    return data;
}

/* Makes the storage key. It is derived from a secret of the TPM, so it is the same one until the TPM is cleared. */
static TSS2_RC make_parent(ctpm *tpm) {
    TPM2B_PUBLIC template = curve_key(TPMA_OBJECT_RESTRICTED | TPMA_OBJECT_DECRYPT);
    TPMT_SYM_DEF_OBJECT *symmetric = &template.publicArea.parameters.eccDetail.symmetric;
    symmetric->algorithm = TPM2_ALG_AES;
    symmetric->keyBits.aes = 128;
    symmetric->mode.aes = TPM2_ALG_CFB;
    const TPM2B_SENSITIVE_CREATE nothing = {0};
    const TPM2B_DATA outside = {0};
    const TPML_PCR_SELECTION registers = {0};
    return esys.Esys_CreatePrimary(tpm->esys, ESYS_TR_RH_OWNER, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &nothing,
                                   &template, &outside, &registers, &tpm->parent, NULL, NULL, NULL, NULL);
}

uint32_t ctpm_open(const char *path, int64_t milliseconds, ctpm **out) {
    int descriptor = open_way(path, milliseconds);
    if (descriptor < 0) return errno == EAGAIN ? CTPM_LATE : CTPM_GONE;
    ctpm *tpm = calloc(1, sizeof *tpm);
    if (!tpm) {
        close(descriptor);
        return TSS2_ESYS_RC_MEMORY;
    }
    tpm->way.magic = 0x6261646765640001;
    tpm->way.version = 1;
    tpm->way.transmit = transmit;
    tpm->way.receive = receive;
    tpm->descriptor = descriptor;
    tpm->end = now() + milliseconds;
    tpm->parent = ESYS_TR_NONE;
    TSS2_RC code = esys.Esys_Initialize(&tpm->esys, (TSS2_TCTI_CONTEXT *)tpm, NULL);
    if (!code) code = make_parent(tpm);
    if (code) {
        uint32_t result = end(tpm, code);
        ctpm_close(tpm);
        return result;
    }
    *out = tpm;
    return CTPM_OK;
}

void ctpm_close(ctpm *tpm) {
    if (tpm->esys) {
        flush(tpm, &tpm->parent);
        /* Secrets went through this memory, and libtss2 does not wipe it. */
        if (tpm->memory) explicit_bzero(tpm->memory, tpm->memory_size);
        esys.Esys_Finalize(&tpm->esys);
    }
    close(tpm->descriptor);
    free(tpm);
}

static int copy_blob(ctpm_blob *to, const TPM2B_PRIVATE *from) {
    if (from->size > sizeof to->bytes) return 0;
    memcpy(to->bytes, from->buffer, from->size);
    to->count = from->size;
    return 1;
}

static TSS2_RC create(ctpm *tpm, ESYS_TR session, const TPM2B_SENSITIVE_CREATE *sensitive, const TPM2B_PUBLIC *template,
                      TPM2B_PUBLIC *public, ctpm_blob *blob) {
    const TPM2B_DATA outside = {0};
    const TPML_PCR_SELECTION registers = {0};
    TPM2B_PRIVATE *made_private = NULL;
    TPM2B_PUBLIC *made_public = NULL;
    TSS2_RC code = esys.Esys_Create(tpm->esys, tpm->parent, session, ESYS_TR_NONE, ESYS_TR_NONE, sensitive, template,
                                    &outside, &registers, &made_private, &made_public, NULL, NULL, NULL);
    if (code) return code;
    if (!copy_blob(blob, made_private)) code = fail(tpm, CTPM_MALFORMED);
    *public = *made_public;
    esys.Esys_Free(made_private);
    esys.Esys_Free(made_public);
    return code;
}

static TSS2_RC load_object(ctpm *tpm, TPM2B_PUBLIC *public, const ctpm_blob *blob, ESYS_TR *handle) {
    TPM2B_PRIVATE private = {0};
    if (blob->count > sizeof private.buffer) return TSS2_ESYS_RC_BAD_VALUE;
    private.size = (uint16_t)blob->count;
    memcpy(private.buffer, blob->bytes, blob->count);
    return esys.Esys_Load(tpm->esys, tpm->parent, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &private, public,
                          handle);
}

/* MARK: Keys */

uint32_t ctpm_make_key(ctpm *tpm, uint8_t point[64], ctpm_blob *blob) {
    const TPM2B_SENSITIVE_CREATE nothing = {0};
    TPM2B_PUBLIC template = signing_key(), made;
    const TPM2B_ECC_PARAMETER *x = &made.publicArea.unique.ecc.x, *y = &made.publicArea.unique.ecc.y;
    do {
        TSS2_RC code = create(tpm, ESYS_TR_PASSWORD, &nothing, &template, &made, blob);
        if (code) return end(tpm, code);
        /* A TPM may drop leading zeros. Then 64 bytes do not give the public part, so another key is made. */
    } while (x->size != 32 || y->size != 32);
    memcpy(point, x->buffer, 32);
    memcpy(point + 32, y->buffer, 32);
    return CTPM_OK;
}

/* Writes a number of at most 32 bytes with leading zeros. */
static int pad(uint8_t to[32], const TPM2B_ECC_PARAMETER *number) {
    if (number->size > 32) return 0;
    memset(to, 0, 32);
    memcpy(to + 32 - number->size, number->buffer, number->size);
    return 1;
}

uint32_t ctpm_sign(ctpm *tpm, const uint8_t point[64], const ctpm_blob *blob, const uint8_t digest[32],
                   uint8_t signature[64]) {
    TPM2B_PUBLIC public = signing_key();
    TPMS_ECC_POINT *unique = &public.publicArea.unique.ecc;
    unique->x.size = unique->y.size = 32;
    memcpy(unique->x.buffer, point, 32);
    memcpy(unique->y.buffer, point + 32, 32);
    ESYS_TR key = ESYS_TR_NONE;
    TSS2_RC code = load_object(tpm, &public, blob, &key);
    if (code) return end(tpm, code);
    TPM2B_DIGEST content = {.size = 32};
    memcpy(content.buffer, digest, 32);
    const TPMT_SIG_SCHEME scheme = {.scheme = TPM2_ALG_NULL}; /* the scheme of the key */
    const TPMT_TK_HASHCHECK ticket = {.tag = TPM2_ST_HASHCHECK, .hierarchy = TPM2_RH_NULL};
    TPMT_SIGNATURE *made = NULL;
    code = esys.Esys_Sign(tpm->esys, key, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &content, &scheme, &ticket,
                          &made);
    if (!code) {
        const TPMS_SIGNATURE_ECC *numbers = &made->signature.ecdsa;
        if (made->sigAlg != TPM2_ALG_ECDSA || !pad(signature, &numbers->signatureR) ||
            !pad(signature + 32, &numbers->signatureS))
            code = fail(tpm, CTPM_MALFORMED);
        esys.Esys_Free(made);
    }
    flush(tpm, &key);
    return end(tpm, code);
}

/* MARK: Sealed data */

/* Starts a session that encrypts a secret on its way between libtss2 and the TPM, for the one command that uses it. */
static TSS2_RC start_session(ctpm *tpm, TPMA_SESSION direction, ESYS_TR *session) {
    const TPMT_SYM_DEF symmetric = {.algorithm = TPM2_ALG_AES, .keyBits.aes = 128, .mode.aes = TPM2_ALG_CFB};
    TSS2_RC code = esys.Esys_StartAuthSession(tpm->esys, tpm->parent, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE,
                                              ESYS_TR_NONE, NULL, TPM2_SE_HMAC, &symmetric, TPM2_ALG_SHA256, session);
    if (code) return code;
    code = esys.Esys_TRSess_SetAttributes(tpm->esys, *session, direction | TPMA_SESSION_CONTINUESESSION, 0xFF);
    if (code) flush(tpm, session);
    return code;
}

uint32_t ctpm_seal(ctpm *tpm, const uint8_t secret[32], uint8_t name[32], ctpm_blob *blob) {
    ESYS_TR session = ESYS_TR_NONE;
    TSS2_RC code = start_session(tpm, TPMA_SESSION_DECRYPT, &session);
    if (code) return end(tpm, code);
    TPM2B_SENSITIVE_CREATE sensitive = {0};
    sensitive.sensitive.data.size = 32;
    memcpy(sensitive.sensitive.data.buffer, secret, 32);
    TPM2B_PUBLIC template = sealed_data(), made;
    code = create(tpm, session, &sensitive, &template, &made, blob);
    explicit_bzero(&sensitive, sizeof sensitive);
    flush(tpm, &session);
    if (code) return end(tpm, code);
    const TPM2B_DIGEST *unique = &made.publicArea.unique.keyedHash;
    if (unique->size != 32) return CTPM_MALFORMED;
    memcpy(name, unique->buffer, 32);
    return CTPM_OK;
}

uint32_t ctpm_unseal(ctpm *tpm, const uint8_t name[32], const ctpm_blob *blob, uint8_t secret[32]) {
    TPM2B_PUBLIC public = sealed_data();
    public.publicArea.unique.keyedHash.size = 32;
    memcpy(public.publicArea.unique.keyedHash.buffer, name, 32);
    ESYS_TR data = ESYS_TR_NONE, session = ESYS_TR_NONE;
    TSS2_RC code = load_object(tpm, &public, blob, &data);
    if (!code) code = start_session(tpm, TPMA_SESSION_ENCRYPT, &session);
    TPM2B_SENSITIVE_DATA *plain = NULL;
    if (!code) code = esys.Esys_Unseal(tpm->esys, data, session, ESYS_TR_NONE, ESYS_TR_NONE, &plain);
    if (!code) {
        if (plain->size == 32)
            memcpy(secret, plain->buffer, 32);
        else
            code = fail(tpm, CTPM_MALFORMED);
        explicit_bzero(plain, sizeof *plain);
        esys.Esys_Free(plain);
    }
    flush(tpm, &session);
    flush(tpm, &data);
    return end(tpm, code);
}
