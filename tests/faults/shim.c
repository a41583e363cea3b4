/* A file system that fails: loaded before libc (LD_PRELOAD), it counts operations below one folder that change files,
 * and lets the one with a given number fail, or kills the process there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { KILL = -1, SHORT = -2, TORN = -3 }; /* kinds of faults that are no error numbers */
enum { LENGTH = 24, MOST = 65536 };

static char root[PATH_MAX];
static int counted, chosen = -1, kind, stays;
static char names[MOST][LENGTH];

/* Begin to count below a folder. Operation `at` (from 0; -1 for none) fails with the error `what`, or as told above;
 * with `for_good`, so do all later ones that need room on the disk. */
void faults_arm(const char *folder, int at, int what, int for_good) {
  snprintf(root, sizeof root, "%s", folder);
  counted = 0, chosen = at, kind = what, stays = for_good;
}

int faults_count(void) { return counted; }

const char *faults_name(int i) { return i < counted && i < MOST ? names[i] : ""; }

static int is_below(const char *path) {
  char whole[PATH_MAX];
  if (!root[0] || !path) return 0;
  if (path[0] != '/') {
    if (!getcwd(whole, sizeof whole)) return 0;
    return strncmp(whole, root, strlen(root)) == 0;
  }
  return strncmp(path, root, strlen(root)) == 0;
}

static int is_open_below(int fd) {
  char link[64], path[PATH_MAX];
  if (!root[0]) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return path[0] == '/' && is_below(path);
}

/* Count an operation; 0 where it goes on as usual, else the fault that it meets. */
static int meet(const char *name, int relevant) {
  if (!relevant) return 0;
  int number = __atomic_fetch_add(&counted, 1, __ATOMIC_SEQ_CST);
  if (number < MOST) snprintf(names[number], LENGTH, "%s", name);
  int later = stays && chosen >= 0 && number > chosen && kind > 0;
  if (number != chosen && !later) return 0;
  if (kind == KILL) kill(getpid(), SIGKILL);
  return kind;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL(fault) do { if ((fault) > 0) { errno = (fault); return -1; } } while (0)

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT); }

#define OPEN(name, ...)                                               \
  mode_t mode = 0;                                                    \
  if (flags & (O_CREAT | O_TMPFILE)) {                                \
    va_list list;                                                     \
    va_start(list, flags);                                            \
    mode = va_arg(list, mode_t);                                      \
    va_end(list);                                                     \
  }                                                                   \
  FAIL(meet("open", writes(flags) && is_below(path)));                \
  return REAL(name)(__VA_ARGS__)

int open(const char *path, int flags, ...) { OPEN(open, path, flags, mode); }
int open64(const char *path, int flags, ...) { OPEN(open64, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { OPEN(openat, at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { OPEN(openat64, at, path, flags, mode); }

ssize_t write(int fd, const void *from, size_t n) {
  int fault = meet("write", fd > 2 && is_open_below(fd));
  FAIL(fault);
  if ((fault == SHORT || fault == TORN) && n > 1) n /= 2;
  ssize_t done = REAL(write)(fd, from, n);
  if (fault == TORN) kill(getpid(), SIGKILL);
  return done;
}

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at) {
  int fault = meet("pwrite", is_open_below(fd));
  FAIL(fault);
  if (fault == SHORT && n > 1) n /= 2;
  return REAL(pwrite64)(fd, from, n, at);
}

ssize_t writev(int fd, const struct iovec *from, int n) {
  FAIL(meet("writev", fd > 2 && is_open_below(fd)));
  return REAL(writev)(fd, from, n);
}

int fsync(int fd) { FAIL(meet("fsync", is_open_below(fd))); return REAL(fsync)(fd); }
int fdatasync(int fd) { FAIL(meet("fsync", is_open_below(fd))); return REAL(fdatasync)(fd); }
int ftruncate64(int fd, off64_t n) { FAIL(meet("truncate", is_open_below(fd))); return REAL(ftruncate64)(fd, n); }
int posix_fallocate64(int fd, off64_t at, off64_t n) {
  int fault = meet("allocate", is_open_below(fd));
  return fault > 0 ? fault : REAL(posix_fallocate64)(fd, at, n);
}
int mkdir(const char *path, mode_t mode) { FAIL(meet("mkdir", is_below(path))); return REAL(mkdir)(path, mode); }
int chmod(const char *path, mode_t mode) { FAIL(meet("chmod", is_below(path))); return REAL(chmod)(path, mode); }
int rename(const char *a, const char *b) { FAIL(meet("rename", is_below(b))); return REAL(rename)(a, b); }
int renameat(int p, const char *a, int q, const char *b) {
  FAIL(meet("rename", is_below(b)));
  return REAL(renameat)(p, a, q, b);
}
int renameat2(int p, const char *a, int q, const char *b, unsigned flags) {
  FAIL(meet("exchange", is_below(b)));
  return REAL(renameat2)(p, a, q, b, flags);
}
int unlink(const char *path) { FAIL(meet("unlink", is_below(path))); return REAL(unlink)(path); }
int unlinkat(int at, const char *path, int flags) {
  FAIL(meet("unlink", at == AT_FDCWD ? is_below(path) : is_open_below(at)));
  return REAL(unlinkat)(at, path, flags);
}
int rmdir(const char *path) { FAIL(meet("rmdir", is_below(path))); return REAL(rmdir)(path); }
