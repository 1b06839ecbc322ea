/* What a program that talks to the kernel alone tries when it may only look. It gets where things are from its environment,
   and says of each attempt whether it was held. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static void tell(const char *what, int worked) {
  printf("%s %s (%s)\n", worked ? "BROKEN" : "held", what, worked ? "it worked" : strerror(errno));
  fflush(stdout);
}
#define TRY(what, call) (errno = 0, tell(what, (call)))

static int number(const char *name) { return atoi(getenv(name) ? getenv(name) : "0"); }
static char *in(const char *directory, const char *name) {
  char *path;
  if (asprintf(&path, "%s/%s", getenv(directory), name) < 0) exit(9);
  return path;
}
/* Runs an attempt in a process of its own, which may be killed for it. */
static int apart(int (*attempt)(void)) {
  fflush(stdout);
  int child = fork(), status = 0;
  if (child == 0) _exit(attempt() ? 0 : 1);
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
static int datagram(int kind, const char *path) {
  int pair[2];
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  strncpy(to.sun_path, path, sizeof to.sun_path - 1);
  if (socketpair(AF_UNIX, kind, 0, pair)) return 0;
  return sendto(pair[0], "hello", 5, 0, (struct sockaddr *)&to, sizeof to) == 5;
}
static int by_int80(void) {
#ifdef __x86_64__
  long result;
  /* socket(AF_INET, SOCK_STREAM, 0) as an old program would. */
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(359L), "b"(2L), "c"(1L), "d"(0L) : "memory");
  return result >= 0;
#else
  return 0;
#endif
}
static int by_x32(void) { return syscall(0x40000000 | SYS_socket, AF_INET, SOCK_STREAM, 0) >= 0; }
static int owner(int command, int whom) {
  int pipes[2];
  struct { int type, pid; } by_structure = {1, whom};
  if (pipe(pipes)) return 0;
  if (fcntl(pipes[0], command, command == F_SETOWN ? (long)whom : (long)&by_structure)) return 0;
  return 1;
}
static int traced(void) {
  int whom = number("VICTIM");
  return ptrace(PTRACE_SEIZE, whom, 0, 0) == 0 || ptrace(PTRACE_ATTACH, whom, 0, 0) == 0;
}
static int guard_traced(void) { return ptrace(PTRACE_SEIZE, number("GUARD"), 0, 0) == 0; }
static int peeked(int whom) {
  char here[8];
  struct iovec own = {here, 8}, other = {(void *)0x400000, 8};
  return process_vm_readv(whom, &own, 1, &other, 1, 0) > 0 || process_vm_writev(whom, &own, 1, &other, 1, 0) > 0;
}
static int fresh(void) { return unshare(CLONE_NEWUSER) == 0; }
static int mounts(void) { return unshare(CLONE_NEWNS) == 0 || mount("x", "/tmp", "tmpfs", 0, 0) == 0 || umount2("/proc", MNT_DETACH) == 0; }
static int flags(const char *path) {
  int file = open(path, O_RDONLY), attributes = FS_NODUMP_FL;
  return file >= 0 && ioctl(file, FS_IOC_SETFLAGS, &attributes) == 0;
}
static int mapped(const char *path) {
  int file = open(path, O_RDWR);
  return file >= 0 && mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) != MAP_FAILED;
}
static int handle(const char *path) {
  union { struct file_handle head; char room[256]; } place;
  int mount_id, root = open("/tmp", O_RDONLY);
  place.head.handle_bytes = sizeof place - sizeof place.head;
  if (name_to_handle_at(AT_FDCWD, path, &place.head, &mount_id, 0)) return 0;
  return open_by_handle_at(root, &place.head, O_RDWR) >= 0;
}

int main(void) {
  int victim = number("VICTIM"), guard = number("GUARD");
  char room[256] = {0};
  struct timespec old[2] = {{1, 0}, {1, 0}};
  for (int family = 1; family < 46; family++)
    if (family != AF_NETLINK) { sprintf(room, "socket of family %d", family); TRY(room, socket(family, SOCK_STREAM, 0) >= 0 || socket(family, SOCK_DGRAM, 0) >= 0 || socket(family, SOCK_RAW, 0) >= 0); }
  TRY("datagram by a pair", datagram(SOCK_DGRAM, in("P", "datagram")));
  TRY("datagram by a raw pair", datagram(SOCK_RAW | SOCK_CLOEXEC, in("P", "datagram")));
  TRY("old socket call", apart(by_int80));
  TRY("x32 socket call", apart(by_x32));
#ifdef __x86_64__
  /* Numbers of their own, behind which are calls like ioctl and rt_sigqueueinfo. */
  for (int call = 512; call < 548; call++) { sprintf(room, "x32 call %d", call); TRY(room, syscall(0x40000000 | call, -1, -1, -1, -1) >= 0 || errno != EPERM); }
#endif
  TRY("io_uring_setup", syscall(SYS_io_uring_setup, 4, room) >= 0);
  TRY("bpf", syscall(SYS_bpf, 0, room, 64) >= 0);
  TRY("keyctl", syscall(SYS_keyctl, 0, -3, 0) >= 0);
  TRY("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -4) >= 0);
  TRY("userfaultfd", syscall(SYS_userfaultfd, 0) >= 0);
  TRY("ptrace", apart(traced));
  TRY("ptrace of the guard", apart(guard_traced));
  TRY("memory of another", peeked(victim));
  TRY("memory of the guard", peeked(guard));
  TRY("descriptor of another", syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, victim, 0), 1, 0) >= 0);
  TRY("kill", kill(victim, 0) == 0);
  TRY("kill of the guard", kill(guard, 0) == 0);
  TRY("tgkill of the guard", syscall(SYS_tgkill, guard, guard, 0) == 0);
  TRY("signal by a directory", syscall(SYS_pidfd_send_signal, open("/proc/self", O_RDONLY), 0, 0, 0) == 0);
  TRY("owner", owner(F_SETOWN, guard));
  TRY("owner by structure", owner(15, guard));
  TRY("priority", syscall(SYS_setpriority, 0, victim, 9) == 0);
  TRY("priority of all", syscall(SYS_setpriority, 2, 0, 9) == 0);
  TRY("priority of disk for all", syscall(SYS_ioprio_set, 3, 0, (2 << 13) | 6) == 0);
  TRY("scheduler", syscall(SYS_sched_setscheduler, victim, 3, room) == 0);
  TRY("affinity", syscall(SYS_sched_setaffinity, victim, 8, "\1\0\0\0\0\0\0") == 0);
  TRY("limits", syscall(SYS_prlimit64, victim, 7, "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0", 0) == 0);
  TRY("limits of the guard", syscall(SYS_prlimit64, guard, 7, 0, room) == 0);
  TRY("pages of another", syscall(SYS_migrate_pages, victim, 8, "\1\0\0\0\0\0\0", "\1\0\0\0\0\0\0") == 0);
  TRY("user namespace", apart(fresh));
  TRY("mounts", apart(mounts));
  TRY("namespace of another", setns(open(in("/", ""), 0), 0) == 0 || setns(syscall(SYS_pidfd_open, victim, 0), CLONE_NEWNS) == 0);
  TRY("host name", sethostname("pwned", 5) == 0);
  TRY("shared memory", shmat(number("SHM"), 0, 0) != (void *)-1 || shmctl(number("SHM"), IPC_RMID, 0) == 0);
  const char *files[] = {in("P", "file"), in("P", ".git/config"), in("P", "sub"), in("OUT", "file"), in("H", ".bashrc"), "/etc/passwd", "/usr/bin/env"};
  for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
    const char *file = files[i];
    printf("%s\n", file);
    TRY("open", open(file, O_WRONLY) >= 0);
    TRY("truncate", truncate(file, 0) == 0);
    TRY("chmod", chmod(file, 0777) == 0 || syscall(452, AT_FDCWD, file, 0777, 0) == 0);
    TRY("chown", chown(file, getuid(), getgid()) == 0);
    TRY("dates", utimensat(AT_FDCWD, file, old, 0) == 0 || utimensat(AT_FDCWD, file, 0, 0) == 0);
    TRY("attribute", setxattr(file, "user.x", "y", 1, 0) == 0);
    TRY("flags", flags(file));
    TRY("mapping", mapped(file));
    TRY("handle", handle(file));
    TRY("rename", rename(file, "/tmp/x") == 0 || rename("/tmp/x", file) == 0 || syscall(SYS_renameat2, AT_FDCWD, file, AT_FDCWD, in("P", "file"), 2) == 0);
    TRY("link", link(file, "/tmp/y") == 0 || linkat(AT_FDCWD, file, AT_FDCWD, in("P", "linked"), 0) == 0);
    TRY("unlink", unlink(file) == 0 || rmdir(file) == 0);
  }
  TRY("new file", open(in("P", "pwned"), O_CREAT | O_WRONLY, 0600) >= 0 || open(in("P", ""), O_TMPFILE | O_WRONLY, 0600) >= 0);
  TRY("new entries", mkdir(in("P", "d"), 0700) == 0 || mknod(in("P", "n"), S_IFIFO | 0600, 0) == 0 || symlink("/", in("P", "l")) == 0);
  TRY("device", mknod("/tmp/device", S_IFCHR | 0666, 0x103) == 0);
  TRY("owner's rights", open("/tmp/owned", O_CREAT | O_WRONLY, 04755) >= 0 || chmod("/tmp", 04755) == 0);
  puts("end");
  return 0;
}
