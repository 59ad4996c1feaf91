/* Interposed system calls, loaded with LD_PRELOAD: counts the calls that change files below one folder, and at the N-th one kills the
 * process, sends a signal, fails with an error number, or sets the clock; or records all of them with their data.
 *
 * One trial at a time: its state is in memory that is shared with all processes that are forked after loading.
 * Also code that is not Python goes through these calls, such as safetensors (Rust) and sentencepiece (C++). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { CREATE = 1, WRITE = 2, TRUNCATE = 4, RENAME = 8, REMOVE = 16, MKDIR = 32, SYNC = 64 };
enum { NOTHING, KILL, KILL_HALFWAY, SIGNAL, FAIL_ONCE, FAIL_FROM_NOW_ON, SET_CLOCK };
enum { GO = 0, HALF = -1 }; /* what `event` returns; a positive number is an error number */

typedef struct {
  char root[PATH_MAX];
  int armed, action, kinds, value, log, fired, full;
  long at, count, count_of_kind[7];
  pid_t process;
} State;

static State *state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void start(void) {
  state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (state == MAP_FAILED) abort();
}

#define REAL(name) ((typeof(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

/* Called from Python. log: a descriptor for the record, or -1. */
void faults_arm(const char *root, int action, long at, int kinds, int value, int log) {
  strncpy(state->root, root, PATH_MAX - 1);
  state->action = action, state->at = at, state->kinds = kinds, state->value = value, state->log = log;
  state->count = 0, state->fired = 0, state->full = 0, state->process = getpid();
  memset(state->count_of_kind, 0, sizeof state->count_of_kind);
  state->armed = 1;
}
void faults_disarm(void) { state->armed = 0; }
long faults_count(int bit) { return state->count_of_kind[bit]; }
int faults_fired(void) { return state->fired; }    /* whether the N-th change came */
int faults_disk_full(void) { return state->full; } /* whether the file system itself has refused a change for lack of space */

static int below_root(const char *path) {
  size_t length = strlen(state->root);
  return state->armed && !strncmp(path, state->root, length) && (path[length] == '/' || !path[length]);
}

static int path_of(int descriptor, char *path) {
  char link[64];
  if (!state || !state->armed) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return below_root(path) && !strstr(path, " (deleted)");
}

static int resolve(int folder, const char *name, char *path) {
  if (!state || !state->armed) return 0;
  if (name[0] == '/') {
    snprintf(path, PATH_MAX, "%s", name);
  } else {
    char base[PATH_MAX];
    if (folder == AT_FDCWD ? !getcwd(base, sizeof base) : !path_of(folder, base)) return 0;
    snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX / 2, base, name);
  }
  return below_root(path);
}

__attribute__((noreturn)) static void end(void) {
  kill(state->process, SIGKILL);
  for (;;) pause();
}

static int event(int kind) {
  __sync_add_and_fetch(&state->count_of_kind[__builtin_ctz(kind)], 1);
  if (!(kind & state->kinds)) return GO;
  long number = __sync_add_and_fetch(&state->count, 1);
  if (!state->at || number < state->at) return GO;
  state->fired = 1;
  if (number > state->at) return state->action == FAIL_FROM_NOW_ON ? state->value : GO;
  switch (state->action) {
    case KILL: end();
    case KILL_HALFWAY: return HALF;
    case SIGNAL: kill(state->process, state->value); return GO;
    case FAIL_ONCE: case FAIL_FROM_NOW_ON: return state->value;
  }
  return GO;
}

/* Runs before every change; leaves the function with the error, or dies. Without a half, KILL_HALFWAY kills after the change. */
#define BEFORE(kind, failed) \
  int verdict = event(kind); \
  if (verdict > 0) { errno = verdict; return failed; }
#define AFTER(result) \
  if ((result) < 0 && errno == ENOSPC) state->full = 1; \
  if (verdict == HALF) end();

static void record(const char *header, const void *data, size_t size) {
  if (syscall(SYS_write, state->log, header, strlen(header)) < 0) abort();
  for (size_t done = 0; done < size;) {
    ssize_t written = syscall(SYS_write, state->log, (const char *)data + done, size - done);
    if (written < 0) abort();
    done += written;
  }
}
#define RECORD(...) \
  if (state->log >= 0) { char header[3 * PATH_MAX]; snprintf(header, sizeof header, __VA_ARGS__); record(header, "", 0); }

static long inode(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) ? 0 : (long)status.st_ino;
}

static long inode_at(const char *path) {
  struct stat status;
  return lstat(path, &status) ? 0 : (long)status.st_ino;
}

/* Opening */

static int opened(const char *path, int flags, struct stat *before, int existed, int *kind) {
  *kind = 0;
  if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE) return 0;
  if (!existed && (flags & O_CREAT)) *kind = CREATE;
  else if (existed && (flags & O_TRUNC) && before->st_size) *kind = TRUNCATE;
  return *kind && *path;
}

static int open_any(int folder, const char *name, int flags, mode_t mode) {
  char path[PATH_MAX];
  struct stat before;
  int kind = 0;
  int counts = resolve(folder, name, path) && opened(path, flags, &before, !lstat(path, &before), &kind);
  if (!counts) return syscall(SYS_openat, folder, name, flags, mode);
  BEFORE(kind, -1)
  pthread_mutex_lock(&lock);
  int descriptor = syscall(SYS_openat, folder, name, flags, mode);
  if (descriptor >= 0 && kind == CREATE) RECORD("create\t%ld\t%s\n", inode(descriptor), path)
  if (descriptor >= 0 && kind == TRUNCATE) RECORD("truncate\t%ld\t0\n", inode(descriptor))
  pthread_mutex_unlock(&lock);
  AFTER(descriptor)
  return descriptor;
}

#define MODE() mode_t mode = 0; if (flags & (O_CREAT | __O_TMPFILE)) { va_list list; va_start(list, flags); mode = va_arg(list, int); va_end(list); }
int open(const char *name, int flags, ...) { MODE() return open_any(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE() return open_any(AT_FDCWD, name, flags, mode); }
int openat(int folder, const char *name, int flags, ...) { MODE() return open_any(folder, name, flags, mode); }
int openat64(int folder, const char *name, int flags, ...) { MODE() return open_any(folder, name, flags, mode); }
int creat(const char *name, mode_t mode) { return open_any(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }

static FILE *fopen_any(const char *name, const char *how) {
  char path[PATH_MAX];
  FILE *(*original)(const char *, const char *) = real("fopen");
  if (*how == 'r' || !resolve(AT_FDCWD, name, path)) return original(name, how);
  int flags = O_CREAT | (*how == 'w' ? O_TRUNC : O_APPEND) | (strchr(how, '+') ? O_RDWR : O_WRONLY);
  int descriptor = open_any(AT_FDCWD, name, flags, 0666);
  return descriptor < 0 ? NULL : fdopen(descriptor, how);
}
FILE *fopen(const char *name, const char *how) { return fopen_any(name, how); }
FILE *fopen64(const char *name, const char *how) { return fopen_any(name, how); }

/* Writing */

static ssize_t write_at(int descriptor, const void *data, size_t size, off_t offset, int moves) {
  char path[PATH_MAX];
  if (!size || !path_of(descriptor, path))
    return moves ? syscall(SYS_write, descriptor, data, size) : syscall(SYS_pwrite64, descriptor, data, size, offset);
  BEFORE(WRITE, -1)
  if (verdict == HALF) size = (size + 1) / 2;
  pthread_mutex_lock(&lock);
  if (moves) {
    struct stat status;
    int appends = fcntl(descriptor, F_GETFL) & O_APPEND;
    offset = appends && !fstat(descriptor, &status) ? status.st_size : lseek(descriptor, 0, SEEK_CUR);
  }
  ssize_t written = moves ? syscall(SYS_write, descriptor, data, size) : syscall(SYS_pwrite64, descriptor, data, size, offset);
  if (written > 0 && state->log >= 0) {
    char header[256];
    snprintf(header, sizeof header, "write\t%ld\t%ld\t%zd\n", inode(descriptor), (long)offset, written);
    record(header, data, written);
  }
  pthread_mutex_unlock(&lock);
  AFTER(written)
  return written;
}

ssize_t write(int descriptor, const void *data, size_t size) { return write_at(descriptor, data, size, 0, 1); }
ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) { return write_at(descriptor, data, size, offset, 0); }
ssize_t pwrite64(int descriptor, const void *data, size_t size, off_t offset) { return write_at(descriptor, data, size, offset, 0); }

ssize_t writev(int descriptor, const struct iovec *parts, int n_parts) {
  char path[PATH_MAX];
  if (!path_of(descriptor, path)) return syscall(SYS_writev, descriptor, parts, n_parts);
  ssize_t total = 0;
  for (int i = 0; i < n_parts; i++) {
    ssize_t written = write_at(descriptor, parts[i].iov_base, parts[i].iov_len, 0, 1);
    if (written < 0) return total ? total : -1;
    total += written;
    if ((size_t)written < parts[i].iov_len) break;
  }
  return total;
}

/* NumPy writes arrays with this, which does not go through `write` above. */
size_t fwrite(const void *data, size_t size, size_t count, FILE *stream) {
  static size_t (*original)(const void *, size_t, size_t, FILE *);
  if (!original) original = real("fwrite");
  char path[PATH_MAX];
  int descriptor = state && state->armed && stream != stdout && stream != stderr ? fileno(stream) : -1;
  if (descriptor < 0 || !size || !path_of(descriptor, path) || fflush(stream)) return original(data, size, count, stream);
  size_t done = 0;
  while (done < size * count) {
    ssize_t written = write_at(descriptor, (const char *)data + done, size * count - done, 0, 1);
    if (written < 0) break;
    done += written;
  }
  int error = errno;
  fseeko(stream, lseek(descriptor, 0, SEEK_CUR), SEEK_SET); /* what the stream believes */
  errno = error;
  return done / size;
}

/* Copies inside of the kernel are refused, so that programs copy with `write`. */
ssize_t sendfile(int to, int from, off_t *offset, size_t size) {
  char path[PATH_MAX];
  if (path_of(to, path)) { errno = ENOTSOCK; return -1; }
  return syscall(SYS_sendfile, to, from, offset, size);
}
ssize_t sendfile64(int to, int from, off_t *offset, size_t size) { return sendfile(to, from, offset, size); }
ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned flags) {
  char path[PATH_MAX];
  if (path_of(to, path)) { errno = EXDEV; return -1; }
  return syscall(SYS_copy_file_range, from, from_offset, to, to_offset, size, flags);
}

static int truncate_any(int descriptor, off_t size) {
  char path[PATH_MAX];
  if (!path_of(descriptor, path)) return syscall(SYS_ftruncate, descriptor, size);
  BEFORE(TRUNCATE, -1)
  pthread_mutex_lock(&lock);
  int failed = syscall(SYS_ftruncate, descriptor, size);
  if (!failed) RECORD("truncate\t%ld\t%ld\n", inode(descriptor), (long)size)
  pthread_mutex_unlock(&lock);
  AFTER(failed)
  return failed;
}
int ftruncate(int descriptor, off_t size) { return truncate_any(descriptor, size); }
int ftruncate64(int descriptor, off64_t size) { return truncate_any(descriptor, size); }

static int sync_any(int descriptor, long call) {
  char path[PATH_MAX];
  if (!path_of(descriptor, path)) return syscall(call, descriptor);
  BEFORE(SYNC, -1)
  pthread_mutex_lock(&lock);
  int failed = syscall(call, descriptor);
  if (!failed) RECORD("sync\t%ld\t%s\n", inode(descriptor), path)
  pthread_mutex_unlock(&lock);
  AFTER(failed)
  return failed;
}
int fsync(int descriptor) { return sync_any(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return sync_any(descriptor, SYS_fdatasync); }

/* Folders */

static int rename_any(int old_folder, const char *old, int new_folder, const char *new, unsigned flags) {
  char from[PATH_MAX], to[PATH_MAX];
  int counts = resolve(old_folder, old, from) | resolve(new_folder, new, to);
  if (!counts) return syscall(SYS_renameat2, old_folder, old, new_folder, new, flags);
  BEFORE(RENAME, -1)
  pthread_mutex_lock(&lock);
  int failed = syscall(SYS_renameat2, old_folder, old, new_folder, new, flags);
  if (!failed) RECORD("rename\t%s\t%s\n", from, to)
  pthread_mutex_unlock(&lock);
  AFTER(failed)
  return failed;
}
int rename(const char *old, const char *new) { return rename_any(AT_FDCWD, old, AT_FDCWD, new, 0); }
int renameat(int old_folder, const char *old, int new_folder, const char *new) { return rename_any(old_folder, old, new_folder, new, 0); }
int renameat2(int old_folder, const char *old, int new_folder, const char *new, unsigned flags) {
  return rename_any(old_folder, old, new_folder, new, flags);
}

static int remove_any(int folder, const char *name, int flags) {
  char path[PATH_MAX];
  if (!resolve(folder, name, path) || !inode_at(path)) return syscall(SYS_unlinkat, folder, name, flags);
  BEFORE(REMOVE, -1)
  pthread_mutex_lock(&lock);
  int failed = syscall(SYS_unlinkat, folder, name, flags);
  if (!failed) RECORD("remove\t%s\n", path)
  pthread_mutex_unlock(&lock);
  AFTER(failed)
  return failed;
}
int unlink(const char *name) { return remove_any(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return remove_any(AT_FDCWD, name, AT_REMOVEDIR); }
int unlinkat(int folder, const char *name, int flags) { return remove_any(folder, name, flags); }

static int mkdir_any(int folder, const char *name, mode_t mode) {
  char path[PATH_MAX];
  if (!resolve(folder, name, path) || inode_at(path)) return syscall(SYS_mkdirat, folder, name, mode);
  BEFORE(MKDIR, -1)
  pthread_mutex_lock(&lock);
  int failed = syscall(SYS_mkdirat, folder, name, mode);
  if (!failed) RECORD("mkdir\t%ld\t%s\n", inode_at(path), path)
  pthread_mutex_unlock(&lock);
  AFTER(failed)
  return failed;
}
int mkdir(const char *name, mode_t mode) { return mkdir_any(AT_FDCWD, name, mode); }
int mkdirat(int folder, const char *name, mode_t mode) { return mkdir_any(folder, name, mode); }

/* The clock: after the N-th change it shows `value` seconds more. */

static long clock_offset(void) {
  return state && state->armed && state->action == SET_CLOCK && state->count >= state->at ? state->value : 0;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, clock, now);
  if (!failed && clock == CLOCK_REALTIME) now->tv_sec += clock_offset();
  return failed;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  int failed = syscall(SYS_gettimeofday, now, zone);
  if (!failed) now->tv_sec += clock_offset();
  return failed;
}
