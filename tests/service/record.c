/* Preloaded into a server: writes down, in the order in which they happen, what it writes to its database and log, when
   they are synced, and what it sends to its callers. tests/service/powercut.py compiles and reads it.

   DRIFTWISE_RECORD is the file to write to, DRIFTWISE_RECORDED the path of the database. A write is written down before
   it is made, a sync when it begins (what came before it will be on disk) and when it is over (it is). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WRITE, CUT, REMOVE, SYNC_BEGINS, SYNC_ENDS, SENT };
enum { NEITHER = -1, DATABASE, LOG };

struct entry {
    uint64_t nanoseconds;
    uint32_t kind, file;
    uint64_t offset, length;
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int record = -1;
static const char *database;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("DRIFTWISE_RECORD");
    database = getenv("DRIFTWISE_RECORDED");
    if (path && database)
        record = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void all(const void *data, size_t length)
{
    const char *at = data;
    while (length) {
        long written = syscall(SYS_write, record, at, length);
        if (written <= 0)
            abort();
        at += written;
        length -= (size_t)written;
    }
}

static void note(uint32_t kind, int file, uint64_t offset, const void *data, uint64_t length)
{
    struct timespec now;
    pthread_mutex_lock(&turn);
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct entry one = {(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, kind, (uint32_t)file, offset, length};
    all(&one, sizeof one);
    if (data)
        all(data, length);
    pthread_mutex_unlock(&turn);
}

static int named(const char *path)
{
    size_t length = database ? strlen(database) : 0;
    if (record < 0 || strncmp(path, database, length))
        return NEITHER;
    return !path[length] ? DATABASE : !strcmp(path + length, "-wal") ? LOG : NEITHER;
}

static int opened(int fd)
{
    char link[64], path[4096];
    if (record < 0 || fd == record)
        return NEITHER;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return NEITHER;
    path[length] = 0;
    return named(path);
}

static void sent(const void *data, size_t length)
{
    if (record >= 0 && length && (!strncmp(data, "HTTP/1.1 ", length < 9 ? length : 9) || *(const char *)data == '{'))
        note(SENT, 0, 0, data, length);
}

static void wrote(int fd, const void *data, size_t length, int64_t offset)
{
    int file = opened(fd);
    if (file != NEITHER)
        note(WRITE, file, (uint64_t)(offset < 0 ? lseek(fd, 0, SEEK_CUR) : offset), data, length);
    else if (offset < 0)
        sent(data, length);
}

ssize_t write(int fd, const void *data, size_t length)
{
    wrote(fd, data, length, -1);
    return REAL(write)(fd, data, length);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset)
{
    wrote(fd, data, length, offset);
    return REAL(pwrite)(fd, data, length, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset)
{
    wrote(fd, data, length, offset);
    return REAL(pwrite64)(fd, data, length, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    for (int i = 0; i < count; i++)
        sent(parts[i].iov_base, parts[i].iov_len);
    return REAL(writev)(fd, parts, count);
}

ssize_t send(int fd, const void *data, size_t length, int flags)
{
    sent(data, length);
    return REAL(send)(fd, data, length, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    for (size_t i = 0; i < message->msg_iovlen; i++)
        sent(message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
    return REAL(sendmsg)(fd, message, flags);
}

static void cut(int fd, uint64_t length)
{
    int file = opened(fd);
    if (file != NEITHER)
        note(CUT, file, length, NULL, 0);
}

int ftruncate(int fd, off_t length)
{
    cut(fd, (uint64_t)length);
    return REAL(ftruncate)(fd, length);
}

int ftruncate64(int fd, off64_t length)
{
    cut(fd, (uint64_t)length);
    return REAL(ftruncate64)(fd, length);
}

int unlink(const char *path)
{
    int file = named(path);
    if (file != NEITHER)
        note(REMOVE, file, 0, NULL, 0);
    return REAL(unlink)(path);
}

static int synced(int fd, int (*real)(int))
{
    int file = opened(fd);
    if (file == NEITHER)
        return real(fd);
    note(SYNC_BEGINS, file, 0, NULL, 0);
    int failed = real(fd);
    if (!failed)
        note(SYNC_ENDS, file, 0, NULL, 0);
    return failed;
}

int fsync(int fd)
{
    return synced(fd, REAL(fsync));
}

int fdatasync(int fd)
{
    return synced(fd, REAL(fdatasync));
}
