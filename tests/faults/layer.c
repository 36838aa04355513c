/* Fails the n-th call with which Python processes use a file below some folders, or start a program.
 *
 * REFETCH_FAULTS names the control file, which tests/faults/control.py describes; all processes map it.
 * REFETCH_FAULTS_UNDER has the folders, separated by colons. Loaded with LD_PRELOAD.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_FILES 65536
#define KILL (-1)

struct control {
    int64_t count, fail_at, error, traced;
    char what[4064];
};

static struct control *control;
static const char *under;
static unsigned char watched[MOST_FILES];

#define REAL(name, result, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int real_open(const char *path, int flags, mode_t mode) {
    REAL("open64", int, const char *, int, ...);
    return real(path, flags, mode);
}

__attribute__((constructor)) static void begin(void) {
    char name[32] = "";
    const char *file = getenv("REFETCH_FAULTS");
    under = getenv("REFETCH_FAULTS_UNDER");
    int fd = real_open("/proc/self/comm", O_RDONLY, 0);
    if (!file || !under || fd < 0) return;
    REAL("read", ssize_t, int, void *, size_t);
    ssize_t size = real(fd, name, sizeof name - 1);
    close(fd);
    if (size < 6 || strncmp(name, "python", 6)) return;
    fd = real_open(file, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED) control = mapped;
}

static int is_under(const char *path) {
    if (!control || !path) return 0;
    for (const char *at = under; *at;) {
        size_t length = strcspn(at, ":");
        if (length && !strncmp(path, at, length) && (path[length] == '/' || !path[length])) return 1;
        at += length + (at[length] == ':');
    }
    return 0;
}

static int is_code(const char *path) {
    size_t length = strlen(path);
    return length > 3 && (!strcmp(path + length - 3, ".py") || !strcmp(path + length - 4, ".pyc"));
}

/* Whether this call is the one that fails; errno is set then, or the process is killed. */
static int fails(const char *kind, const char *path) {
    int64_t number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    if (control->traced) {
        char line[PATH_MAX + 64], trace[PATH_MAX];
        int size = snprintf(line, sizeof line, "%ld %d %s %s\n", (long)number, getpid(), kind, path);
        snprintf(trace, sizeof trace, "%s.trace", getenv("REFETCH_FAULTS"));
        int fd = real_open(trace, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        REAL("write", ssize_t, int, const void *, size_t);
        if (fd >= 0) real(fd, line, size), close(fd);
    }
    if (number != control->fail_at) return 0;
    snprintf(control->what, sizeof control->what, "%d %s %s", getpid(), kind, path);
    if (control->error == KILL) kill(getpid(), SIGKILL);
    errno = (int)control->error;
    return 1;
}

static int fails_path(const char *kind, const char *path) {
    char whole[PATH_MAX], folder[PATH_MAX / 2];
    if (!control || !path) return 0;
    if (*path != '/' && getcwd(folder, sizeof folder)) {
        snprintf(whole, sizeof whole, "%s/%s", folder, path);
        path = whole;
    }
    return is_under(path) && !is_code(path) && fails(kind, path);
}

static int fails_file(const char *kind, int fd) {
    char link[64], path[PATH_MAX];
    if (!control || fd < 0 || fd >= MOST_FILES || !watched[fd]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size < 0 ? 0 : size] = 0;
    return is_under(path) && fails(kind, path);
}

static int kept(int fd, const char *path) {
    if (fd >= 0 && fd < MOST_FILES) watched[fd] = control && path && !is_code(path);
    return fd;
}

#define MODE(flags) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        MODE(flags) REAL(#name, int, const char *, int, ...); \
        return fails_path("open", path) ? -1 : kept(real(path, flags, mode), path); }
#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        MODE(flags) REAL(#name, int, int, const char *, int, ...); \
        int is_plain = at == AT_FDCWD || *path == '/'; \
        return is_plain && fails_path("open", path) ? -1 : kept(real(at, path, flags, mode), path); }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
    REAL("close", int, int);
    if (fd >= 0 && fd < MOST_FILES) watched[fd] = 0;
    return real(fd);
}

#define ON_FILE(result, name, kind, parameters, arguments) \
    result name parameters { \
        static result (*real) parameters; \
        if (!real) real = (result (*) parameters)dlsym(RTLD_NEXT, #name); \
        return fails_file(kind, fd) ? -1 : real arguments; }
ON_FILE(ssize_t, read, "read", (int fd, void *to, size_t size), (fd, to, size))
ON_FILE(ssize_t, pread, "read", (int fd, void *to, size_t size, off_t at), (fd, to, size, at))
ON_FILE(ssize_t, pread64, "read", (int fd, void *to, size_t size, off64_t at), (fd, to, size, at))
ON_FILE(ssize_t, readv, "read", (int fd, const struct iovec *to, int count), (fd, to, count))
ON_FILE(ssize_t, write, "write", (int fd, const void *from, size_t size), (fd, from, size))
ON_FILE(ssize_t, pwrite, "write", (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
ON_FILE(ssize_t, pwrite64, "write", (int fd, const void *from, size_t size, off64_t at), (fd, from, size, at))
ON_FILE(ssize_t, writev, "write", (int fd, const struct iovec *from, int count), (fd, from, count))
ON_FILE(int, fsync, "sync", (int fd), (fd))
ON_FILE(int, fdatasync, "sync", (int fd), (fd))
ON_FILE(int, ftruncate, "truncate", (int fd, off_t size), (fd, size))
ON_FILE(int, ftruncate64, "truncate", (int fd, off64_t size), (fd, size))

#define ON_PATH(name, kind, parameters, path, arguments) \
    int name parameters { \
        static int (*real) parameters; \
        if (!real) real = (int (*) parameters)dlsym(RTLD_NEXT, #name); \
        return fails_path(kind, path) ? -1 : real arguments; }
ON_PATH(rename, "rename", (const char *from, const char *to), to, (from, to))
ON_PATH(renameat, "rename", (int at, const char *from, int there, const char *to), to, (at, from, there, to))
ON_PATH(renameat2, "rename", (int at, const char *from, int there, const char *to, unsigned flags), to,
        (at, from, there, to, flags))
ON_PATH(link, "link", (const char *from, const char *to), to, (from, to))
ON_PATH(linkat, "link", (int at, const char *from, int there, const char *to, int flags), to,
        (at, from, there, to, flags))
ON_PATH(unlink, "unlink", (const char *path), path, (path))
ON_PATH(rmdir, "rmdir", (const char *path), path, (path))
ON_PATH(mkdir, "mkdir", (const char *path, mode_t mode), path, (path, mode))

#define ON_PROGRAM(name, parameters, arguments) \
    int name parameters { \
        static int (*real) parameters; \
        if (!real) real = (int (*) parameters)dlsym(RTLD_NEXT, #name); \
        return control && *path == '/' && !access(path, X_OK) && fails("exec", path) ? -1 : real arguments; }
ON_PROGRAM(execv, (const char *path, char *const arguments[]), (path, arguments))
ON_PROGRAM(execve, (const char *path, char *const arguments[], char *const environment[]),
           (path, arguments, environment))
