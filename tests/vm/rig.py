# SPDX-License-Identifier: Apache-2.0
"""A Linux NFS/RDMA server in QEMU, for tests on a machine that has no RDMA in its kernel.

The guest runs the distribution's own kernel on the host's root file system (9p, read-only, below a tmpfs overlay),
so whatever was built on the host runs there unchanged. Debian does not build siw, so it is compiled from the
matching kernel source, twice: as it is, and with the CRC trailer mended (see SIW_MEND_*).

Everything kept between runs lies under ${NFSRDMA_VM_DIR:-/var/tmp/nfsrdma-vm}; one directory below run/ per guest.
"""
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
CACHE = pathlib.Path(os.environ.get("NFSRDMA_VM_DIR", "/var/tmp/nfsrdma-vm"))
MEMORY_MIB = int(os.environ.get("NFSRDMA_VM_MEMORY_MIB", "2048"))
BOOT_LIMIT_S = int(os.environ.get("NFSRDMA_VM_BOOT_LIMIT_S", "180"))

# Guest TCP ports that the host reaches at a port of its own choosing; the names end up in the state file.
FORWARDS = {"AGENT_PORT": 2323, "NFS_PORT": 2049, "RDMA_PORT": 20049, "SERVE_PORT": 20050}

# In siw a pad+CRC trailer that two TCP segments share is stored twice at the start of its buffer, so that with CRC
# on a healthy connection ends with "crc error". The mended build puts the later piece behind the earlier one.
SIW_MEND_FILE = "siw_qp_rx.c"
SIW_MEND_FROM = "skb_copy_bits(skb, srx->skb_offset, tbuf, avail)"
SIW_MEND_TO = ("skb_copy_bits(skb, srx->skb_offset,\n"
               "\t\t      tbuf + (srx->pad + MPA_CRC_SIZE - srx->fpdu_part_rem), avail)")


class RigError(Exception):
    """One line that says what was tried, what was found and what to do."""


class Unavailable(RigError):
    """The machine cannot run the rig at all; tests are skipped with this reason."""


def say(text):
    print(f"vm: {text}", file=sys.stderr, flush=True)


def run(argv, **kw):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        raise RigError(f"{' '.join(map(str, argv))} ended with {done.returncode}:\n{tail}")
    return done.stdout


# ---------------------------------------------------------------------------------------------- what is needed

def check_tools():
    if os.uname().machine != "x86_64":
        raise Unavailable(f"the guest shares the host's programs and needs x86_64, this is {os.uname().machine}")
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    wanted = {
        "qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio", "modprobe": "kmod",
        "depmod": "kmod", "rdma": "iproute2", "rpc.nfsd": "nfs-kernel-server", "mount.nfs": "nfs-common",
        "make": "make", "gcc": "gcc", "xz": "xz-utils", "dpkg-deb": "dpkg", "apt-get": "apt",
        "rping": "rdmacm-utils", "ibv_devinfo": "ibverbs-utils", "tcpdump": "tcpdump",
    }
    missing = sorted({pkg for tool, pkg in wanted.items() if not shutil.which(tool, path=path)})
    if missing:
        raise Unavailable(f"packages missing: {' '.join(missing)}; run scripts/deps test")
    busybox = pathlib.Path(shutil.which("busybox", path=path))
    if b"/ld-linux" in busybox.read_bytes():
        raise Unavailable("busybox is not statically linked; install busybox-static (scripts/deps test)")
    return busybox


def kernel_release():
    """The release that the distribution's current kernel package stands for, such as 6.1.0-57-amd64."""
    def ask():
        try:
            text = run(["apt-cache", "depends", "linux-image-amd64"])
        except RigError:
            return None
        return re.search(r"Depends: linux-image-(\S+-amd64)\b", text)

    found = ask()
    if not found and os.geteuid() == 0:
        run(["apt-get", "update", "-q"])  # a fresh container has no package index
        found = ask()
    if not found:
        raise Unavailable("apt knows no linux-image-amd64; run apt-get update (Debian 12 or later is needed)")
    return found.group(1)


def headers_dir(release):
    """Headers are the one part that must be installed: their makefiles name absolute paths."""
    where = pathlib.Path(f"/usr/src/linux-headers-{release}")
    if not where.is_dir():
        package = f"linux-headers-{release}"
        if os.geteuid() != 0:
            raise Unavailable(f"package missing: {package}; run scripts/deps test")
        run(["apt-get", "install", "-y", "-q", "--no-install-recommends", package],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    return where


# -------------------------------------------------------------------------------------------------------- setup

def download(package, into):
    into.mkdir(parents=True, exist_ok=True)
    # apt gives up its rights for downloads where it can; as root the sandbox user may not write here.
    run(["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", package], cwd=into)
    found = list(into.glob(package.split("=")[0] + "_*.deb"))
    if len(found) != 1:
        raise RigError(f"apt-get download {package} left {len(found)} files in {into}")
    return found[0]


def unpack_kernel(release, root, work):
    """The kernel is unpacked, never installed: the host's boot files are none of our business."""
    package = download(f"linux-image-{release}", work)
    run(["dpkg-deb", "-x", package, root])
    package.unlink()


def siw_source(release, work):
    headers = run(["dpkg-query", "-W", "-f", "${Version}", f"linux-headers-{release}"])
    series = ".".join(release.split(".")[:2])
    package = download(f"linux-source-{series}={headers}", work)
    fs = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    xz = subprocess.Popen(["tar", "-xOf", "-", f"./usr/src/linux-source-{series}.tar.xz"], stdin=fs.stdout,
                          stdout=subprocess.PIPE)
    run(["tar", "-xJf", "-", "-C", work, f"linux-source-{series}/drivers/infiniband/sw/siw"], stdin=xz.stdout)
    fs.stdout.close()
    xz.stdout.close()
    if fs.wait() != 0 or xz.wait() != 0:
        raise RigError(f"{package} could not be unpacked")
    package.unlink()
    return work / f"linux-source-{series}/drivers/infiniband/sw/siw"


def build_siw(release, source, flavour, into, work):
    tree = work / f"siw-{flavour}"
    shutil.copytree(source, tree)
    if flavour == "mended":
        path = tree / SIW_MEND_FILE
        text = path.read_text()
        if text.count(SIW_MEND_FROM) != 1:
            raise RigError(f"{SIW_MEND_FILE} of {release} no longer has the line that mends the CRC trailer")
        path.write_text(text.replace(SIW_MEND_FROM, SIW_MEND_TO))
    run(["make", "-s", "-C", headers_dir(release), f"M={tree}", "CONFIG_RDMA_SIW=m", "modules"])
    into.mkdir(parents=True, exist_ok=True)
    run(["strip", "--strip-debug", "-o", into / "siw.ko", tree / "siw.ko"])


INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for m in $(cat /mod/order); do insmod /mod/$m || echo "initramfs: insmod $m failed"; done
P=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o $P,ro,cache=loose hostroot /lower || exec sh
mount -t tmpfs -o size=25% tmpfs /upper; mkdir -p /upper/data /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work overlay /root || exec sh
mkdir -p /root/vm /root/usr/lib/modules/@RELEASE@
mount -t 9p -o $P,cache=none share /root/vm || exec sh
mount -t 9p -o $P,ro,cache=loose modules /root/usr/lib/modules/@RELEASE@ || exec sh
for d in proc sys dev; do mount --move /$d /root/$d; done
exec switch_root /root /bin/bash /vm/guest/init.sh
"""


def make_initramfs(release, root, busybox, out, work):
    tree = work / "initramfs"
    for name in ("bin", "mod", "proc", "sys", "dev", "lower", "upper", "root"):
        (tree / name).mkdir(parents=True)
    shutil.copy(busybox, tree / "bin/busybox")
    order = []
    for module in ("virtio_pci", "9p", "9pnet_virtio", "overlay", "virtio_net"):
        text = run(["modprobe", "-d", root, "-S", release, "--show-depends", module],
                   env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})
        for line in text.splitlines():
            word = line.split()
            if word[:1] == ["insmod"] and word[1] not in order:
                order.append(word[1])
    for path in order:
        shutil.copy(path, tree / "mod")
    (tree / "mod/order").write_text("\n".join(os.path.basename(p) for p in order) + "\n")
    (tree / "init").write_text(INIT.replace("@RELEASE@", release))
    (tree / "init").chmod(0o755)
    run(["sh", "-c", f"cd '{tree}' && find . | cpio -o -H newc --quiet | gzip -1 > '{out}'"])


def setup():
    """Prepares kernel, both siw modules and the initramfs; a second call finds all of it done."""
    busybox = check_tools()
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "setup.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        release = kernel_release()
        place = CACHE / release
        # The cached initramfs and modules are only as good as the recipe that made them.
        recipe = INIT + SIW_MEND_TO
        stamp = place / "complete"
        if stamp.is_file() and stamp.read_text() == recipe:
            return place
        t0 = time.monotonic()
        say(f"preparing kernel {release} in {place} (once)")
        headers_dir(release)
        shutil.rmtree(place, ignore_errors=True)
        work = place / "work"
        work.mkdir(parents=True)
        root = place / "root"
        unpack_kernel(release, root, work)
        source = siw_source(release, work)
        for flavour in ("stock", "mended"):
            build_siw(release, source, flavour, root / f"lib/modules/{release}/siw-{flavour}", work)
        run(["/usr/sbin/depmod" if os.path.exists("/usr/sbin/depmod") else "depmod", "-b", root, release])
        make_initramfs(release, root, busybox, place / "initramfs.gz", work)
        shutil.rmtree(work)
        stamp.write_text(recipe)
        say(f"prepared in {time.monotonic() - t0:.0f} s")
        return place


# -------------------------------------------------------------------------------------------------------- guest

def read_exactly(sock, n):
    data = b""
    while len(data) < n:
        piece = sock.recv(n - len(data))
        if not piece:
            raise RigError("the guest's agent closed the connection (did the guest die? see: vm console)")
        data += piece
    return data


class Qmp:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(str(path))
        self.lines = self.sock.makefile("r")
        self.lines.readline()
        self.command("qmp_capabilities")

    def command(self, name, **arguments):
        self.sock.sendall(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = json.loads(self.lines.readline())
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise RigError(f"qemu refused {name}: {answer['error']['desc']}")


class Guest:
    """One virtual machine. Its state lies in run/<name>/, so that another process can pick it up."""

    def __init__(self, name=None):
        self.name = name or os.environ.get("NFSRDMA_VM_NAME", "default")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,40}", self.name):
            raise RigError(f"guest name {self.name!r}: letters, digits, dot, dash and underscore only")
        self.dir = CACHE / "run" / self.name
        self.share = self.dir / "share"

    # -- state file: KEY=VALUE lines which a shell can source

    def state(self):
        try:
            lines = (self.dir / "state").read_text().splitlines()
        except FileNotFoundError:
            raise RigError(f"guest {self.name!r} is not started (vm start)") from None
        return dict(line.split("=", 1) for line in lines if line)

    def alive(self):
        """The pid of our QEMU, or None; a recycled pid is told apart by its command line."""
        try:
            pid = int(self.state()["PID"])
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (RigError, OSError):
            return None
        return pid if f"nfsrdma-{self.name}".encode() in words and state != "Z" else None

    def qemu_argv(self, place, mounts, pcap):
        def share(tag, path, mode):
            path = str(path).replace(",", ",,")
            return ["-fsdev", f"local,id={tag},path={path},security_model=none,{mode}multidevs=remap",
                    "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]

        release = place.name
        forwards = ",".join(f"hostfwd=tcp:127.0.0.1:0-:{port}" for port in FORWARDS.values())
        argv = ["qemu-system-x86_64", "-name", f"nfsrdma-{self.name}", "-machine", "pc", "-nodefaults",
                "-no-user-config", "-display", "none", "-no-reboot", "-accel", "tcg,thread=multi", "-cpu", "max",
                "-smp", "2", "-m", str(MEMORY_MIB), "-kernel", place / f"root/boot/vmlinuz-{release}",
                "-initrd", place / "initramfs.gz", "-append",
                "console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr audit=0 apparmor=0 nowatchdog "
                "net.ifnames=0 random.trust_cpu=on",
                "-serial", f"file:{self.dir / 'console.log'}", "-device", "virtio-rng-pci",
                "-qmp", f"unix:{self.dir / 'qmp'},server=on,wait=off",
                "-netdev", f"user,id=net0,{forwards}", "-device", "virtio-net-pci,netdev=net0,romfile=",
                *share("hostroot", "/", "readonly=on,"), *share("share", self.share, ""),
                *share("modules", place / f"root/lib/modules/{release}", "readonly=on,")]
        for index, path in enumerate(mounts):
            argv += share(f"mount{index}", path, "readonly=on,")
        if pcap:
            argv += ["-object", f"filter-dump,id=dump0,netdev=net0,file={self.dir / 'eth0.pcap'},maxlen=192"]
        return [str(word) for word in argv]

    def start(self, build=None, pcap=False, tied=False):
        """Boots and waits for the agent. With `tied` the guest dies with this process, however that ends."""
        place = setup()
        if self.alive():
            raise RigError(f"guest {self.name!r} is already running (vm stop)")
        shutil.rmtree(self.dir, ignore_errors=True)
        self.share.mkdir(parents=True)
        self.dir.chmod(0o700)
        shutil.copytree(HERE / "guest", self.share / "guest")
        (self.share / "token").write_text(secrets.token_hex(16))
        # The guest's /tmp, /run and /var are its own, so sources and build are mounted again at their host paths.
        mounts = [REPO]
        if build:
            build = pathlib.Path(build).resolve()
            if not build.is_dir():
                raise RigError(f"no build directory {build}")
            if REPO != build and REPO not in build.parents:
                mounts.append(build)
        (self.share / "mounts").write_text("".join(f"mount{i} {p}\n" for i, p in enumerate(mounts)))

        def die_with_parent():
            os.setsid()
            if tied:
                ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

        t0 = time.monotonic()
        out = open(self.dir / "qemu.out", "w")
        qemu = subprocess.Popen(self.qemu_argv(place, mounts, pcap), stdin=subprocess.DEVNULL, stdout=out,
                                stderr=subprocess.STDOUT, preexec_fn=die_with_parent, cwd="/")
        (self.dir / "state").write_text(f"PID={qemu.pid}\n")
        try:
            self.await_agent(qemu, t0, build)
        except BaseException:
            qemu.kill()
            qemu.wait()
            (self.dir / "state").unlink()
            raise
        self.process = qemu
        say(f"guest {self.name} up after {time.monotonic() - t0:.1f} s")

    def await_agent(self, qemu, t0, build):
        console = self.dir / "console.log"
        while True:
            if qemu.poll() is not None:
                raise RigError(f"qemu ended with {qemu.returncode}: {(self.dir / 'qemu.out').read_text()[-2000:]}"
                               f"\n{self.console()[-2000:]}")
            if console.exists() and b"AGENT-READY" in console.read_bytes():
                break
            if time.monotonic() - t0 > BOOT_LIMIT_S:
                raise RigError(f"no agent {BOOT_LIMIT_S} s after power-on; console:\n{self.console()[-2000:]}")
            time.sleep(0.1)
        text = Qmp(self.dir / "qmp").command("human-monitor-command", **{"command-line": "info usernet"})
        state = {"NAME": self.name, "PID": qemu.pid, "DIR": self.dir, "SHARE": self.share, "BUILD": build or "",
                 "CONSOLE": console}
        for key, port in FORWARDS.items():
            found = re.search(rf"TCP\[HOST_FORWARD\]\s+\d+\s+\S+\s+(\d+)\s+\S+\s+{port}\b", text)
            if not found:
                raise RigError(f"qemu forwards no host port to guest port {port}:\n{text}")
            state[key] = found.group(1)
        (self.dir / "state").write_text("".join(f"{k}={v}\n" for k, v in state.items()))

    def request(self, request, out=None, timeout_s=None):
        """Sends one request to the agent; returns (exit code, output). Output goes to `out` as it comes, if given."""
        request["token"] = (self.share / "token").read_text()
        collected = []
        try:
            with socket.create_connection(("127.0.0.1", int(self.state()["AGENT_PORT"])), timeout=10) as sock:
                sock.settimeout(timeout_s)
                sock.sendall(json.dumps(request).encode() + b"\n")
                while True:
                    kind, length = struct.unpack("!cI", read_exactly(sock, 5))
                    body = read_exactly(sock, length)
                    if kind == b"x":
                        return int(body), b"".join(collected).decode(errors="replace")
                    if out is None:
                        collected.append(body)
                    else:
                        (out if kind == b"o" else sys.stderr.buffer).write(body)
                        (out if kind == b"o" else sys.stderr.buffer).flush()
        except (socket.timeout, ConnectionError) as error:
            raise RigError(f"guest {self.name}: {request.get('run', request)!r}: {error} "
                           f"(qemu {'runs' if self.alive() else 'is gone'})") from None

    def shell(self, command, timeout_s=120):
        """Runs a bash command line in the guest; raises RigError unless it ends with 0."""
        rc, text = self.request({"run": command}, timeout_s=timeout_s)
        if rc != 0:
            raise RigError(f"in the guest: {command}: exit {rc}\n{text[-4000:]}")
        return text

    def console(self):
        try:
            return (self.dir / "console.log").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def collect(self, into):
        """Keeps what explains a failure: console, kernel log and trace, state of nfsd and RDMA, packets."""
        into.mkdir(parents=True, exist_ok=True)
        (into / "console.log").write_text(self.console())
        if self.alive():
            with contextlib.suppress(RigError):
                (into / "guest.txt").write_text(
                    self.request({"run": "bash /vm/guest/rig.sh report"}, timeout_s=60)[1])
        for path in [*self.share.glob("*.log"), self.dir / "eth0.pcap", self.dir / "qemu.out"]:
            if path.exists():
                shutil.copy(path, into)

    def stop(self):
        pid = self.alive()
        if pid:
            with contextlib.suppress(OSError, RigError, ValueError):
                Qmp(self.dir / "qmp").command("quit")
            for sig in (0, signal.SIGTERM, signal.SIGKILL):
                deadline = time.monotonic() + 5
                if self.alive() == pid:
                    os.kill(pid, sig)
                while self.alive() == pid and time.monotonic() < deadline:
                    time.sleep(0.05)
        process = getattr(self, "process", None)
        if process:
            process.wait()
        with contextlib.suppress(FileNotFoundError):
            (self.dir / "state").unlink()
