"""System calls that fail, or at which the process is killed, in a command run as a process of its
own.

A library that is loaded before all others counts the calls that concern a folder, Arrow's and
Python's alike, and makes one of them fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

from .processes import command

KILL = -1
"""A value in place of an errno: the process is killed before the call."""

READING = "read"
WRITING = "write"
SYNCING = "sync"
OPENING = "open"
MAPPING = "map"
"""A kind of call: mappings of memory, which count whatever the folder."""
CALLS = (READING, WRITING, SYNCING, OPENING)

_SOURCE = r"""
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
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long counted;

static int fails(const char *kind, const char *path)
{
    const char *folder = getenv("FAULT_FOLDER"), *kinds = getenv("FAULT_CALLS");
    if (!folder || !kinds || !strstr(kinds, kind)) return 0;
    if (path && strncmp(path, folder, strlen(folder))) return 0;
    long number = __sync_add_and_fetch(&counted, 1);
    const char *log = getenv("FAULT_LOG");
    if (log) {
        int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
        int file = real(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        ssize_t (*put)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
        if (file >= 0) { if (put(file, ".", 1)) {} close(file); }
    }
    if (number != atol(getenv("FAULT_NUMBER"))) return 0;
    int error = atoi(getenv("FAULT_ERROR"));
    if (error < 0) kill(getpid(), SIGKILL);
    errno = error;
    return 1;
}

static int fails_at(const char *kind, int descriptor)
{
    char link[64], path[PATH_MAX + 1];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(kind, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define OPENING(name) \
    int name(const char *path, int flags, ...) \
    { \
        va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more); \
        return fails("open", path) ? -1 : REAL(name)(path, flags, mode); \
    }
OPENING(open)
OPENING(open64)
#define FOR(kind, type, name, takes, gives) \
    type name takes { return fails_at(kind, fd) ? -1 : REAL(name) gives; }
FOR("read", ssize_t, read, (int fd, void *to, size_t n), (fd, to, n))
FOR("read", ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
FOR("read", ssize_t, pread64, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
FOR("read", ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
FOR("read", ssize_t, preadv64, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
FOR("read", ssize_t, preadv2, (int fd, const struct iovec *v, int n, off_t at, int how),
    (fd, v, n, at, how))
FOR("write", ssize_t, write, (int fd, const void *of, size_t n), (fd, of, n))
FOR("write", ssize_t, pwrite, (int fd, const void *of, size_t n, off_t at), (fd, of, n, at))
FOR("write", ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
FOR("sync", int, fsync, (int fd), (fd))
FOR("sync", int, fdatasync, (int fd), (fd))

void *mmap(void *at, size_t length, int access, int flags, int fd, off_t offset)
{
    if (fd < 0 && fails("map", NULL)) return MAP_FAILED;
    return REAL(mmap)(at, length, access, flags, fd, offset);
}
"""


@lru_cache(maxsize=1)
def library() -> Path | None:
    """Build and return the library; None where there is no C compiler, or no Linux."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not Path("/proc/self/fd").is_dir():
        return None
    folder = Path(tempfile.mkdtemp(prefix="faulty-calls-"))
    source, target = folder / "faulty.c", folder / "faulty.so"
    source.write_text(_SOURCE)
    line = [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", str(target), str(source), "-ldl"]
    run = subprocess.run(line, capture_output=True)
    return target if run.returncode == 0 else None


class Ended(NamedTuple):
    """The end of a command. calls: number of counted calls."""

    code: int
    out: str
    err: str
    calls: int


def run_faulty(
    args: tuple, folder: Path, number: int = 0, error: int = KILL, calls: tuple[str, ...] = CALLS
) -> Ended:
    """Run a command in which call ``number`` of some kinds to a folder's files fails; 0: no call
    fails.
    """
    faulty = library()
    if faulty is None:
        pytest.skip("no C compiler")
    with tempfile.TemporaryDirectory(prefix="faulty-log-") as place:
        log = Path(place, "log")
        fault = {
            "LD_PRELOAD": str(faulty),
            "FAULT_FOLDER": os.path.realpath(folder),
            "FAULT_CALLS": " ".join(calls),
            "FAULT_NUMBER": str(number),
            "FAULT_ERROR": str(error),
            "FAULT_LOG": str(log),
        }
        run = subprocess.run(
            command(*args), env={**os.environ, **fault}, capture_output=True, text=True, timeout=120
        )
        counted = log.stat().st_size if log.exists() else 0
    return Ended(run.returncode, run.stdout, run.stderr, counted)
