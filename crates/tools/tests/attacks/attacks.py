"""What an interpreter tries from inside of a sandbox. It says of each attempt whether it was held."""

import ctypes
import fcntl
import glob
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import termios

env = os.environ
out, key = env["OUT"], env["SECRET_FILE"]
libc = ctypes.CDLL(None, use_errno=True)


def attempt(what, call):
    try:
        result = call()
    except Exception as error:
        print(f"held {what} ({error})", flush=True)
        return
    print(f"BROKEN {what} ({result!r})" if result is not False else f"held {what}", flush=True)


def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def connect(family, kind, address):
    s = socket.socket(family, kind)
    s.settimeout(2)
    s.connect(address)
    s.send(b"bad")


def append(path):
    with open(path, "a") as file:
        file.write("bad")


def type_into_a_terminal():
    ends = os.openpty()
    try:
        fcntl.ioctl(ends[1], termios.TIOCSTI, b"x")
    finally:
        for end in ends:
            os.close(end)


attempt("write outside", lambda: append(f"{out}/file"))
attempt("copy outside", lambda: shutil.copy("plain", f"{out}/plain"))
attempt("tree removed outside", lambda: shutil.rmtree(out))
attempt("chmod outside", lambda: os.chmod(f"{out}/file", 0o777))
attempt("chown outside", lambda: os.chown(f"{out}/file", 0, 0))
attempt("times outside", lambda: os.utime(f"{out}/file"))
attempt("temporary file outside", lambda: tempfile.mkstemp(dir=out))
attempt("write to the user's shell", lambda: append(os.path.expanduser("~/.bashrc")))
attempt("write to the home", lambda: append(env["HOME_DIRECTORY"] + "/new"))
attempt("read a key", lambda: open(key).read())
attempt("find keys", lambda: glob.glob(os.path.dirname(key) + "/*") or False)
attempt("read keys of processes", lambda: [open(p, "rb").read() for p in glob.glob("/proc/*/environ") if b"NOT_FOR_COMMANDS" in open(p, "rb").read()] or False)
attempt("key in the environment", lambda: env["MY_API_KEY"])
attempt("address with a password in the environment", lambda: env["DATABASE_URL"])
attempt("TCP", lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(env["TCP"]))))
attempt("UDP to anywhere", lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)))
attempt("UDP without a connection", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"bad", ("192.0.2.1", 53)))
attempt("names of hosts", lambda: socket.getaddrinfo("example.com", 80))
attempt("socket by path", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "socket"))
attempt("abstract socket", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + env["ABSTRACT"]))
attempt("signal outside", lambda: os.kill(int(env["OUTER"]), signal.SIGTERM))
attempt("trace outside", lambda: call("ptrace", 16, int(env["OUTER"]), 0, 0))
attempt("namespace of users", lambda: call("unshare", 0x10000000))
attempt("namespace of users by clone", lambda: call("syscall", 56, 0x10000000 | 17, 0, 0, 0, 0))
attempt("setns", lambda: call("setns", os.open("/proc/1/ns/mnt", os.O_RDONLY), 0))
attempt("memory of a process outside", lambda: open(f"/proc/{env['OUTER']}/mem", "rb"))
attempt("memory of the guard", lambda: open("/proc/1/mem", "rb"))
attempt("environment of the guard", lambda: open("/proc/1/environ", "rb").read())
attempt("io_uring", lambda: call("syscall", 425, 8, ctypes.create_string_buffer(256)))
attempt("a program for the kernel", lambda: call("syscall", 321 if os.uname().machine == "x86_64" else 280, 0, ctypes.create_string_buffer(128), 128))
attempt("keys of the session", lambda: call("syscall", 250 if os.uname().machine == "x86_64" else 219, 0, -3, 0))
attempt("type into a terminal", type_into_a_terminal)
attempt("a program that runs as its owner", lambda: (append("tool"), os.chmod("tool", 0o4755)))
attempt("one that is born so", lambda: os.open("born", os.O_CREAT | os.O_WRONLY, 0o4755))
attempt("mount", lambda: call("mount", b"tmpfs", b"/tmp", b"tmpfs", 0, 0))
attempt("write through an old link", lambda: append("old-link"))
attempt("write through a new link", lambda: (os.symlink(f"{out}/file", "new-link"), append("new-link")))
attempt("read a key through a new link", lambda: (os.symlink(key, "new-key"), open("new-key").read()))
attempt("hard link to outside", lambda: os.link(f"{out}/file", "hard"))
attempt("datagram by path", lambda: connect(socket.AF_UNIX, socket.SOCK_DGRAM, f"{out}/socket"))
attempt("a program of root's", lambda: subprocess.check_output(["su", "-c", "id"], stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT) if os.getuid() else False)
attempt("guarded directory removed", lambda: shutil.rmtree(".git"))
attempt("guarded directory moved", lambda: os.rename(".git", "elsewhere"))
attempt("guarded file written", lambda: append(".envrc"))
attempt("guarded file replaced", lambda: os.replace("plain", ".envrc"))
attempt("descriptors", lambda: [f for f in os.listdir("/proc/self/fd") if int(f) > 3] or False)
attempt("processes outside", lambda: [p for p in os.listdir("/proc") if p.isdigit() and open(f"/proc/{p}/cmdline").read() == "sleep\0001000\0"] or False)


def works(what, call):
    try:
        call()
        print(f"works {what}")
    except Exception as error:
        print(f"FAILS {what} ({error})")


def loopback():
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).close()


works("loopback", loopback)
works("temporary file", lambda: tempfile.NamedTemporaryFile().write(b"x"))
works("processes of its own", lambda: multiprocessing.get_context("fork").Process(target=int).start())
works("locks between processes", multiprocessing.Lock)
works("a shell", lambda: subprocess.check_call(["bash", "-c", "cat < <(echo through) | grep -q through"]))
works("a terminal of its own", os.openpty)
print("end")
