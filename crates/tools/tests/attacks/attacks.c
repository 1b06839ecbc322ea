/* What a program that talks to the kernel alone tries from inside of a sandbox. It gets where things are from its
   environment, and says of each attempt whether it was held. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
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

static char *in(const char *directory, const char *name) {
  char *path;
  if (asprintf(&path, "%s/%s", getenv(directory), name) < 0) exit(9);
  return path;
}
static int writes(const char *path, int flags) {
  int file = open(path, O_WRONLY | flags, 0600);
  if (file < 0) return 0;
  int wrote = write(file, "bad", 3) == 3;
  close(file);
  return wrote;
}
static int reads(const char *path) {
  char byte;
  int file = open(path, O_RDONLY);
  if (file < 0) return 0;
  int got = read(file, &byte, 1) == 1;
  close(file);
  return got;
}
static int reaches(int family, int kind, const char *host, int port) {
  int s = socket(family, kind, 0);
  if (s < 0) return 0;
  int worked;
  if (family == AF_INET) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, host, &a.sin_addr);
    worked = connect(s, (void *)&a, sizeof a) == 0;
  } else {
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    inet_pton(AF_INET6, host, &a.sin6_addr);
    worked = connect(s, (void *)&a, sizeof a) == 0;
  }
  /* UDP connects to anything with a route: what counts is whether somebody outside gets it. */
  if (worked) worked = send(s, "bad", 3, MSG_NOSIGNAL) == 3;
  close(s);
  return worked;
}
static int reaches_path(const char *path, int abstract, int kind) {
  int s = socket(AF_UNIX, kind, 0);
  if (s < 0) return 0;
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  strncpy(a.sun_path + abstract, path, sizeof a.sun_path - 2);
  socklen_t length = offsetof(struct sockaddr_un, sun_path) + abstract + strlen(path) + !abstract;
  int worked = connect(s, (void *)&a, length) == 0;
  close(s);
  return worked;
}

int main(void) {
  char *file = in("OUT", "file"), *key = getenv("SECRET_FILE");
  int tcp = atoi(getenv("TCP")), udp = atoi(getenv("UDP"));
  pid_t pid = atoi(getenv("OUTER"));
  char path[4096];

  TRY("write outside", writes(file, 0));
  TRY("append outside", writes(file, O_APPEND));
  TRY("create outside", writes(in("OUT", "new"), O_CREAT));
  TRY("truncate outside", truncate(file, 0) == 0);
  TRY("chmod outside", chmod(file, 0777) == 0);
  TRY("chmod of a directory outside", chmod(getenv("OUT"), 0777) == 0);
  TRY("chown outside", chown(file, getuid(), getgid()) == 0);
  TRY("times outside", utimes(file, NULL) == 0);
  TRY("attribute outside", setxattr(file, "user.bad", "1", 1, 0) == 0);
  TRY("unlink outside", unlink(file) == 0);
  TRY("rename outside", rename(file, in("OUT", "moved")) == 0);
  TRY("rename into the project", rename(file, "stolen") == 0);
  TRY("rename out of the project", rename("plain", in("OUT", "plain")) == 0);
  TRY("hard link to outside", link(file, "hard") == 0);
  TRY("symbolic link outside", symlink("/", in("OUT", "link")) == 0);
  TRY("directory outside", mkdir(in("OUT", "directory"), 0700) == 0);
  TRY("device outside", mknod(in("OUT", "device"), S_IFCHR | 0600, 0x0103) == 0);
  TRY("device in the project", mknod("device", S_IFBLK | 0600, 0xfe00) == 0);
  TRY("write through an old link", writes("old-link", 0));
  unlink("new-link");
  if (symlink(file, "new-link")) return 8;
  TRY("write through a new link", writes("new-link", 0));
  {
    int f = open(file, O_RDONLY);
    snprintf(path, sizeof path, "/proc/self/fd/%d", f);
    TRY("open a read-only file again for writing", f >= 0 && writes(path, 0));
    TRY("chmod by descriptor", f >= 0 && fchmod(f, 0777) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", f);
    TRY("link by descriptor", linkat(AT_FDCWD, path, AT_FDCWD, "hard2", AT_SYMLINK_FOLLOW) == 0);
  }

  TRY("read a key", reads(key));
  TRY("read a key through an old link", reads("old-key"));
  unlink("new-key");
  if (symlink(key, "new-key")) return 8;
  TRY("read a key through a new link", reads("new-key"));
  snprintf(path, sizeof path, "/proc/1/root%s", key);
  TRY("read a key through the first process", reads(path));
  snprintf(path, sizeof path, "/proc/%d/root%s", pid, key);
  TRY("read a key through a process outside", reads(path));
  snprintf(path, sizeof path, "/proc/%d/environ", pid);
  TRY("read the environment of a process outside", reads(path));
  TRY("read the environment of the guard", reads("/proc/1/environ"));
  TRY("read the memory of the guard", reads("/proc/1/mem"));
  TRY("read shadow", reads("/etc/shadow"));
  for (int number = 3; number < 64; number++) {
    if (fcntl(number, F_GETFD) >= 0) { struct stat s; if (fstat(number, &s) == 0 && !S_ISREG(s.st_mode)) TRY("an inherited descriptor", 1); }
  }

  TRY("TCP to a loopback outside", reaches(AF_INET, SOCK_STREAM, "127.0.0.1", tcp));
  TRY("TCP6 to a loopback outside", reaches(AF_INET6, SOCK_STREAM, "::1", tcp));
  TRY("TCP to anywhere", reaches(AF_INET, SOCK_STREAM, "192.0.2.1", 80));
  TRY("UDP to anywhere", reaches(AF_INET, SOCK_DGRAM, "192.0.2.1", 53));
  reaches(AF_INET, SOCK_DGRAM, "127.0.0.1", udp); /* whoever listens knows */
  TRY("raw socket", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0);
  TRY("packet socket", socket(AF_PACKET, SOCK_RAW, 0) >= 0);
  TRY("socket to the machine below", socket(AF_VSOCK, SOCK_STREAM, 0) >= 0);
  TRY("socket of the kernel's ciphers", socket(AF_ALG, SOCK_SEQPACKET, 0) >= 0);
  TRY("socket by path in the project", reaches_path("socket", 0, SOCK_STREAM));
  TRY("datagram by path in the project", reaches_path("socket", 0, SOCK_DGRAM));
  TRY("socket by path outside", reaches_path(in("OUT", "socket"), 0, SOCK_STREAM));
  TRY("abstract socket", reaches_path(getenv("ABSTRACT"), 1, SOCK_STREAM));
  TRY("io_uring", syscall(SYS_io_uring_setup, 8, calloc(1, 256)) >= 0);
#ifdef __x86_64__
  TRY("socket of the other flavour", syscall(0x40000000 | SYS_socket, AF_UNIX, SOCK_STREAM, 0) >= 0);
#endif

  TRY("signal to a process outside", kill(pid, 0) == 0);
  TRY("kill a process outside", kill(pid, SIGKILL) == 0);
  TRY("a handle of a process outside", syscall(SYS_pidfd_open, pid, 0) >= 0);
  TRY("trace a process outside", ptrace(PTRACE_ATTACH, pid, 0, 0) == 0);
  TRY("trace the guard", ptrace(PTRACE_ATTACH, 1, 0, 0) == 0);
  char byte;
  struct iovec mine = {&byte, 1}, other = {(void *)0x400000, 1};
  TRY("read the memory of a process outside", process_vm_readv(pid, &mine, 1, &other, 1, 0) == 1);
  kill(1, SIGKILL); /* whether we are still here, the end tells */
  TRY("memory shared by number", shmget(atoi(getenv("SHARED")), 0, 0) >= 0);
  TRY("keys of the session", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) >= 0);
  TRY("a program for the kernel", syscall(SYS_bpf, 0, calloc(1, 128), 128) >= 0);

  TRY("mount", mount("tmpfs", "/tmp", "tmpfs", 0, 0) == 0);
  TRY("bind", mount("/", "/tmp", 0, MS_BIND, 0) == 0);
  TRY("remount for writing", mount(0, "/", 0, MS_REMOUNT | MS_BIND, 0) == 0);
  TRY("remount a guarded path", mount(0, ".git", 0, MS_REMOUNT | MS_BIND, 0) == 0);
  TRY("unmount a guarded path", umount2(".git", MNT_DETACH) == 0);
  TRY("unmount what covers the home", umount2("/root", MNT_DETACH) == 0);
  TRY("another root", chroot("/tmp") == 0);
  TRY("namespace of mounts", unshare(CLONE_NEWNS) == 0);
  if (fork() == 0) {
    int nested = unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    TRY("namespace of users", nested);
    if (nested) {
      TRY("nested: remount for writing", mount(0, "/", 0, MS_REMOUNT | MS_BIND, 0) == 0);
      TRY("nested: remount a guarded path", mount(0, ".git", 0, MS_REMOUNT | MS_BIND, 0) == 0);
      TRY("nested: unmount a guarded path", umount2(".git", MNT_DETACH) == 0);
      TRY("nested: mount", mount("tmpfs", "/tmp", "tmpfs", 0, 0) == 0);
    }
    _exit(0);
  }
  wait(NULL);
  snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
  TRY("namespace of a process outside", reads(path) || open(path, O_RDONLY) >= 0);
  {
    int here = open("/proc/1/ns/mnt", O_RDONLY);
    TRY("enter the namespace of the guard", here >= 0 && setns(here, 0) == 0);
    int handle = syscall(SYS_pidfd_open, getppid(), 0);
    TRY("enter a namespace by handle", handle >= 0 && setns(handle, CLONE_NEWUSER | CLONE_NEWNS) == 0);
  }
  snprintf(path, sizeof path, "/proc/%d/mem", pid);
  TRY("open the memory of a process outside", open(path, O_RDWR) >= 0);
  snprintf(path, sizeof path, "/proc/%d/fd", pid);
  TRY("descriptors of a process outside", open(path, O_RDONLY | O_DIRECTORY) >= 0);
  {
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    int mine = terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0 ? open(ptsname(terminal), O_RDWR | O_NOCTTY) : -1;
    TRY("type into a terminal", ioctl(mine, TIOCSTI, "x") == 0);
    TRY("type into our own", ioctl(0, TIOCSTI, "x") == 0 || ioctl(1, TIOCSTI, "x") == 0);
  }
  close(open("tool", O_CREAT | O_WRONLY, 0755));
  TRY("a program that runs as its owner", chmod("tool", 04755) == 0);
  TRY("the same by descriptor", fchmod(open("tool", O_RDONLY), 04755) == 0);
  TRY("the same by the newest call", syscall(452, AT_FDCWD, "tool", 04755, 0) == 0);
  TRY("one that is born so", open("born", O_CREAT | O_WRONLY, 04755) >= 0);
  {
    struct { unsigned long long flags, mode, resolve; } how = {O_CREAT | O_WRONLY, 04755, 0};
    TRY("one that is born so by the newest call", syscall(437, AT_FDCWD, "born2", &how, sizeof how) >= 0);
  }
  TRY("a key of one's own", syscall(SYS_add_key, "user", "x", "y", 1, KEY_SPEC_USER_KEYRING) >= 0);
  TRY("a file by its handle", syscall(SYS_open_by_handle_at, AT_FDCWD, calloc(1, 256), O_RDONLY) >= 0);
  TRY("become root", getuid() != 0 && setuid(0) == 0);
  TRY("become somebody else", setuid(12345) == 0);
  TRY("core pattern", writes("/proc/sys/kernel/core_pattern", 0));
  TRY("sysrq", writes("/proc/sysrq-trigger", 0));
  TRY("more namespaces", writes("/proc/sys/user/max_user_namespaces", 0));
  TRY("kernel log", writes("/dev/kmsg", 0));
  TRY("memory of the machine", reads("/dev/mem"));
  TRY("a disk", reads("/dev/vda") || reads("/dev/sda"));
  TRY("host name", sethostname("bad", 3) == 0);
  TRY("clock", settimeofday(&(struct timeval){1, 0}, NULL) == 0);

  TRY("write to .git/config", writes(".git/config", 0));
  TRY("a new hook", writes(".git/hooks/pre-commit", O_CREAT));
  TRY("move .git away", rename(".git", "git") == 0);
  TRY("write to .envrc", writes(".envrc", 0));
  TRY("move over .envrc", rename("plain", ".envrc") == 0);
  TRY("unlink .envrc", unlink(".envrc") == 0);
  TRY("another name of .envrc", writes("alias", 0));
  TRY("link .envrc", link(".envrc", "envrc") == 0);
  TRY("chmod .git/config", chmod(".git/config", 0777) == 0);
  TRY("deeper .Git", writes("deep/er/.Git/config", 0));
  TRY("settings", writes(".claude/settings.json", 0));
  TRY("exchange .git", syscall(SYS_renameat2, AT_FDCWD, "other", AT_FDCWD, ".git", 2 /* RENAME_EXCHANGE */) == 0);

  /* What has to work. */
  int lo = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof a;
  int works = bind(lo, (void *)&a, size) == 0 && listen(lo, 1) == 0 && getsockname(lo, (void *)&a, &size) == 0;
  works = works && reaches(AF_INET, SOCK_STREAM, "127.0.0.1", ntohs(a.sin_port));
  printf("%s loopback of its own\n", works ? "works" : "FAILS");
  int pair[2];
  printf("%s socketpair\n", socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 ? "works" : "FAILS");
  printf("%s write in the project\n", writes("plain", 0) ? "works" : "FAILS");
  printf("%s write to /tmp\n", writes("/tmp/new", O_CREAT) ? "works" : "FAILS");
  printf("%s write to /dev/shm\n", writes("/dev/shm/new", O_CREAT) ? "works" : "FAILS");
  printf("%s read outside\n", reads(file) ? "works" : "FAILS");
  printf("end\n");
  return 0;
}
