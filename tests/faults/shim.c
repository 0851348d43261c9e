/* Calls that change files below one directory, counted; from a chosen one on they fail, or it is where the process dies.

   Loaded with LD_PRELOAD. `fault_arm` is called by the process under test before it begins. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char prefix[PATH_MAX];
static atomic_long calls;
static long at = -1;
static int mode; /* 0: count only; -1: SIGKILL to the process group; else errno */
static const char *failed = ""; /* the call that failed last */
static int sticky; /* a full disk stays full; an I/O error comes once */

void fault_arm(const char *directory, long call, int how, int stays) {
    strncpy(prefix, directory, sizeof prefix - 1);
    mode = how;
    sticky = stays;
    at = call;
    calls = 0;
}

long fault_calls(void) { return calls; }

const char *fault_failed(void) { return failed; }

static int below(const char *path) { return prefix[0] && path && strncmp(path, prefix, strlen(prefix)) == 0; }

static int below_fd(int fd) {
    char link[64], path[PATH_MAX];
    if (!prefix[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return below(path);
}

/* Whether this call fails. `grows`: it takes space, so it fails on a full disk. */
static int fails(int grows, const char *name) {
    long n = atomic_fetch_add(&calls, 1);
    if (at < 0 || n < at || mode == 0) return 0;
    if (mode == -1) {
        if (n == at) kill(0, SIGKILL);
        pause();
    }
    if (sticky ? !grows : n != at) return 0;
    errno = mode;
    failed = name;
    return 1;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return below_fd(fd) && fails(1, __func__) ? -1 : real(fd, data, size);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    return below_fd(fd) && fails(1, __func__) ? -1 : real(fd, data, size, place);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t place) { return pwrite64(fd, data, size, place); }
int fsync(int fd) {
    REAL(int, "fsync", int);
    return below_fd(fd) && fails(1, __func__) ? -1 : real(fd);
}
int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    return below_fd(fd) && fails(1, __func__) ? -1 : real(fd);
}
int ftruncate64(int fd, off64_t size) {
    REAL(int, "ftruncate64", int, off64_t);
    return below_fd(fd) && fails(0, __func__) ? -1 : real(fd, size);
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return below(to) && fails(0, __func__) ? -1 : real(from, to);
}
int link(const char *from, const char *to) {
    REAL(int, "link", const char *, const char *);
    return below(to) && fails(0, __func__) ? -1 : real(from, to);
}
int linkat(int fd, const char *from, int fd2, const char *to, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    return below(to) && fails(0, __func__) ? -1 : real(fd, from, fd2, to, flags);
}
int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return below(path) && fails(0, __func__) ? -1 : real(path);
}
int mkdir(const char *path, mode_t bits) {
    REAL(int, "mkdir", const char *, mode_t);
    return below(path) && fails(1, __func__) ? -1 : real(path, bits);
}
int rmdir(const char *path) {
    REAL(int, "rmdir", const char *);
    return below(path) && fails(0, __func__) ? -1 : real(path);
}
int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t bits = va_arg(rest, mode_t);
    va_end(rest);
    REAL(int, "open64", const char *, int, ...);
    return (flags & O_CREAT) && below(path) && fails(1, __func__) ? -1 : real(path, flags, bits);
}
int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t bits = va_arg(rest, mode_t);
    va_end(rest);
    return open64(path, flags, bits);
}
