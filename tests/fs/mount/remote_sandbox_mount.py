"""The sandbox of the daemon of an address: what an attacker inside of it cannot do, and what works within.

All other mounts of addresses in these tests are in the sandbox, too (remote_sources.Remote.mount)."""

import errno
import json
import os
import signal
import socket
import subprocess
import time
import unittest

import mounting
from mounting import background, pread, wait_for
# First of the two: it says where the other one is.
from remote_sources import KEY, MIB, SECRET, Key, Served, noise, outcome, whole
from object_service import ObjectService

OTHER_USER = 65534
NETWORK = 4  # the version of Landlock that restricts TCP
SCOPES = 6  # that restricts signals

# What holes end with in auto: an error, or the end of the daemon. In both threads:
REFUSED = {"read": errno.EACCES, "overwrite": errno.EACCES, "create": errno.EACCES, "remove": errno.EACCES,
           "code": errno.ENOSYS, "fork": errno.ENOSYS}
ENDED = ("execute", "mount", "trace")
# In the thread that talks to servers it is sockets of some kinds alone that end the daemon.
REFUSED_TO_FETCHER = {**REFUSED, "overwrite": errno.ENOSYS, "create": errno.ENOSYS, "remove": errno.ENOSYS,
                      "signal": errno.ENOSYS, "fast": errno.ENOSYS, "relative": errno.ENOSYS}
ENDED_IN_FETCHER = (*ENDED, "bind", "listen")
ENDED_IN_OTHERS = (*ENDED, "connect", "port", "bind", "listen", "fast", "relative")


def port_of(service):
    return service.url().rsplit(":", 1)[1].split("/", maxsplit=1)[0]


class Confined(Served):
    """The base of the classes below."""

    def setUp(self):
        super().setUp()
        if not mounting.has_sandbox():
            self.skipTest("no Landlock here")
        self.content = noise(3, 4 * MIB)
        for name in "xyz":
            self.service.put(f"d/{name}.b2frame", self.packed(self.content))

    def write(self, name, text, mode=0o600):
        """Puts a file in the place of another one, as programs do that renew credentials."""
        path = f"{self.home}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path + ".new", mode)
        os.replace(path + ".new", path)
        return path


class Holes(Confined):
    def setUp(self):
        super().setUp()
        self.outside = self.work + "/outside"
        os.mkdir(self.outside, 0o755)
        os.chmod(self.work, 0o755)
        for name in ("secret", "removed"):
            with open(f"{self.outside}/{name}", "wb") as file:
                file.write(b"of another program")
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listening.close)
        self.sleeper = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(self.sleeper.wait)
        self.addCleanup(self.sleeper.kill)

    def with_holes(self, *options, environment=None, path="d/"):
        return self.mount(self.web(path), "remote_ttl=0", "readahead=0", "workers=1", *options, environment={
            "LD_PRELOAD": os.environ["HOLES_LIBRARY"], "HOLE_DIRECTORY": self.outside, "HOLE_PROCESS": str(self.sleeper.pid),
            "HOLE_PORT": str(self.listening.getsockname()[1]), **(environment or {})})

    def go_through(self, mount, hole):
        """What the hole ends with: an errno; 0 for one that is open."""
        with open(f"{self.outside}/{hole}", "wb"):
            pass
        outcome(pread, mount / "x", 0, 4096)  # asks the server
        line = wait_for(lambda: [line for line in mount.all_lines() if line.startswith(hole + ": ")], what=hole)
        os.unlink(f"{self.outside}/{hole}")
        return int(line[0].split()[1])

    def test_the_holes_are_open_without_it(self):
        ended = ENDED if os.geteuid() == 0 else [hole for hole in ENDED if hole != "mount"]
        with self.with_holes("sandbox=off") as mount:
            for place in ("serve", "fetch"):
                for hole in (*REFUSED, *ended, "connect", "port", "bind", "listen", "signal"):
                    self.assertEqual(self.go_through(mount, f"{place}-{hole}"), 0, (place, hole))

    def test_a_call_elsewhere_is_refused(self):
        with self.with_holes("sandbox=auto") as mount:
            for place, holes in (("serve", REFUSED), ("fetch", REFUSED_TO_FETCHER)):
                for hole, why in holes.items():
                    self.assertEqual(self.go_through(mount, f"{place}-{hole}"), why, (place, hole))
            if mounting.landlock_version() >= SCOPES:
                self.assertEqual(self.go_through(mount, "serve-signal"), errno.EPERM)
            self.assertEqual(whole(mount / "x"), self.content)
        self.assertEqual(sorted(os.listdir(self.outside)), ["removed", "secret"])

    def test_connections_go_to_the_ports_of_servers_only(self):
        if mounting.landlock_version() < NETWORK:
            self.skipTest("Landlock does not restrict TCP here")
        with self.with_holes("sandbox=auto") as mount:
            self.assertEqual(self.go_through(mount, "fetch-port"), errno.EACCES)
        # The port to which the server redirects when the mount is made is one of them.
        with ObjectService() as other:
            other.put("x.b2frame", self.packed(self.content))
            self.service.faults.add("redirect", "d/x.b2frame", to=other.url("/web/x.b2frame"))
            with self.with_holes("sandbox=auto", environment={"HOLE_PORT": port_of(other)}, path="d/x.b2frame") as mount:
                self.assertEqual(self.go_through(mount, "fetch-port"), 0)
        self.service.faults.clear()
        # So is that of a proxy.
        proxy = {"all_proxy": "http://127.0.0.1:%d" % self.listening.getsockname()[1], "no_proxy": "127.0.0.1"}
        with self.with_holes("sandbox=auto", environment=proxy) as mount:
            self.assertEqual(self.go_through(mount, "fetch-port"), 0)

    def test_names_are_looked_up_by_one_thread(self):
        with self.with_holes("sandbox=auto") as mount:
            self.assertEqual(self.go_through(mount, "fetch-names"), 0)
            self.assertEqual(self.go_through(mount, "serve-names"), errno.EACCES)

    def test_secrets_of_root_cannot_be_read(self):
        if os.geteuid() != 0:
            self.skipTest("not root")
        with self.with_holes("sandbox=off") as mount:
            self.assertEqual(self.go_through(mount, "fetch-secret"), 0)
        with self.with_holes("sandbox=auto") as mount:
            for place in ("serve", "fetch"):
                self.assertEqual(self.go_through(mount, place + "-secret"), errno.EACCES)

    def test_a_call_that_only_an_attacker_makes_ends_the_daemon(self):
        for place, holes in (("serve", ENDED_IN_OTHERS), ("fetch", ENDED_IN_FETCHER)):
            for hole in holes:
                mount = self.with_holes("sandbox=auto")
                with self.assertRaises(AssertionError) as ended:
                    with open(f"{self.outside}/{place}-{hole}", "wb"):
                        pass
                    outcome(pread, mount / "y", 0, 4096)
                    mount.close()
                os.unlink(f"{self.outside}/{place}-{hole}")
                self.assertIn(f"exit status {-signal.SIGSYS}", str(ended.exception), (place, hole))
                wait_for(lambda mount=mount: not mounting.is_mounted(mount.path), what="the guard to unmount")

    def test_each_thread_is_in_it(self):
        with self.mount(self.web("d/")) as mount:
            self.assertEqual(whole(mount / "x"), self.content)
            threads, identities = 0, set()
            for thread in os.listdir(f"/proc/{mount.daemon.pid}/task"):
                with open(f"/proc/{mount.daemon.pid}/task/{thread}/status", encoding="ascii") as status:
                    fields = dict(line.split(":", 1) for line in status)
                self.assertEqual((fields["NoNewPrivs"].strip(), fields["Seccomp"].strip()), ("1", "2"), fields["Name"])
                identities.add(fields["Uid"].split()[3])
                threads += 1
            self.assertGreater(threads, 2)
            if os.geteuid() == 0:
                self.assertEqual(identities, {"0", str(OTHER_USER)})
            wait_for(lambda: any("; sandbox: Landlock" in line for line in mount.all_lines()), what="the line")


class Within(Confined):
    """What works in the sandbox."""

    def test_redirects(self):
        with ObjectService() as other:
            other.put("x.b2frame", self.packed(self.content))
            self.service.faults.add("redirect", "d/x.b2frame", to=other.url("/web/x.b2frame"))
            # To a port that the server redirects to when the mount is made.
            with self.mount(self.web("d/x.b2frame")) as mount:
                self.assertEqual(whole(mount / "x"), self.content)
            # To another host, which is looked up in the sandbox, and the known port.
            self.service.faults.add("redirect", "d/y.b2frame", to=self.web("d/z.b2frame").replace("127.0.0.1", "localhost"))
            with self.mount(self.web("d/"), "remote_timeout=5") as mount:
                self.assertEqual(whole(mount / "y"), self.content)
                if mounting.landlock_version() < NETWORK:
                    return
                # To a port that is not known before.
                self.assertIn(outcome(whole, mount / "x"), ("error EOPNOTSUPP", "error EIO"))
                wait_for(lambda: any(f"the sandbox permits no connection to port {port_of(other)}; the option sandbox=off does" in line
                                     for line in mount.all_lines()), what="the line")
            with self.mount(self.web("d/"), "sandbox=off") as mount:
                self.assertEqual(whole(mount / "x"), self.content)

    def read_renewed(self, mount, renew):
        """Reads, has the service refuse the credentials, and reads on with others."""
        with open(mount / "x", "rb", buffering=0) as file:
            self.assertEqual(os.pread(file.fileno(), 4096, 0), self.content[:4096])
            # Credentials that were read a moment ago are not read again: until then the read fails.
            self.service.keys.clear()
            self.service.keys["RENEWED"] = Key("renewed-secret")
            renew()

            def reads():
                found = outcome(os.pread, file.fileno(), 4096, 3 * MIB)
                return found == self.content[3 * MIB : 3 * MIB + 4096]

            wait_for(reads, what="the renewed credentials")

    def test_a_program_gives_credentials_and_is_run_by_the_guard(self):
        self.credentials = {}
        ran = self.work + "/ran"

        def write_program(key, secret):
            answer = json.dumps({"Version": 1, "AccessKeyId": key, "SecretAccessKey": secret})
            return self.write("knows", f"#!/bin/sh\nprintf x >>'{ran}'\necho '{answer}'\n", 0o700)

        program = write_program(KEY, SECRET)
        self.write(".aws/config", f"[default]\ncredential_process = {program}\n")
        with self.mount("s3://bucket/d/", "readahead=0", "remote_timeout=1") as mount:
            before = os.path.getsize(ran)
            self.read_renewed(mount, lambda: write_program("RENEWED", "renewed-secret"))
            self.assertGreater(os.path.getsize(ran), before)

    def test_why_a_program_gives_no_credentials_is_told(self):
        self.credentials = {}
        self.write_program_that_works_once()
        with self.mount("s3://bucket/d/", "readahead=0", "remote_ttl=0", "remote_timeout=1") as mount:
            time.sleep(0.01)
            self.service.keys.clear()

            def is_told():
                outcome(whole, mount / "x")
                return any("it ended with status 3" in line for line in mount.all_lines())

            wait_for(is_told, what="the line")

    def write_program_that_works_once(self):
        answer = json.dumps({"Version": 1, "AccessKeyId": KEY, "SecretAccessKey": SECRET})
        program = self.write("knows", f"#!/bin/sh\n[ -e '{self.work}/ran' ] && exit 3\n>'{self.work}/ran'\necho '{answer}'\n",
                             0o700)
        self.write(".aws/config", f"[default]\ncredential_process = {program}\n")

    def test_files_of_credentials_are_replaced(self):
        self.credentials = {}

        def write_profile(key, secret):
            self.write(".aws/credentials", f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")

        write_profile(KEY, SECRET)
        with self.mount("s3://bucket/d/", "readahead=0", "remote_timeout=1") as mount:
            self.read_renewed(mount, lambda: write_profile("RENEWED", "renewed-secret"))

    def test_a_token_is_replaced(self):
        self.service.web_token = "first"
        token = self.write("token", "first")
        with self.mount(self.web("d/"), "token_file=" + token, "readahead=0", "remote_ttl=0") as mount:
            self.assertEqual(whole(mount / "x"), self.content)
            self.service.web_token = "second"
            self.write("token", "second")
            self.assertEqual(whole(mount / "y"), self.content)
            # Without the guard no file of credentials is opened.
            guards = mounting.guards_of(mount.path)
            self.assertEqual(len(guards), 1)
            os.kill(guards[0], signal.SIGKILL)
            wait_for(lambda: not mounting.guards_of(mount.path), what="the end of the guard")
            self.service.web_token = "third"
            self.write("token", "third")
            self.assertEqual(outcome(whole, mount / "z"), "error EACCES")
            subprocess.run(["fusermount3", "-u", mount.path], check=True)
            mount.daemon.wait(60)

    def test_the_disk_cache(self):
        cache = self.work + "/cache"
        fetched = []
        for _ in range(2):
            self.service.clear_log()
            with self.mount(self.web("d/"), "cache_dir=" + cache) as mount:
                for name in "xyz":
                    self.assertEqual(whole(mount / name), self.content)
            fetched.append(sum(request.sent for request in self.objects(".b2frame")))
        self.assertGreater(fetched[0], 3 * len(self.content) // 2)
        self.assertLess(fetched[1], MIB)

    def test_log_and_signals(self):
        log = self.work + "/log"
        with self.mount(self.web("d/"), "log=" + log, "stats=on") as mount:
            wait_for(lambda: os.path.exists(log) and b"mounted" in whole(log), what="the line")
            os.rename(log, log + ".1")
            mount.daemon.send_signal(signal.SIGHUP)
            wait_for(lambda: os.path.exists(log), what="the new log")
            mount.daemon.send_signal(signal.SIGUSR2)
            wait_for(lambda: whole(log), what="the statistics")
            self.assertEqual(whole(mount / "x"), self.content)
            self.assertGreater(mount.statistics()["start_time_seconds"], 0)

    def test_an_idle_mount_is_unmounted(self):
        options = self.all_options(self.web("d/"), ("idle_timeout=0.1",))
        done = background(self.web("d/"), self.mountpoint, *options, env={**os.environ, **self.environment()})
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        wait_for(lambda: not mounting.is_mounted(self.mountpoint), what="the end of the mount")
        wait_for(lambda: not mounting.daemons_of(self.mountpoint) and not mounting.guards_of(self.mountpoint),
                 what="the end of its processes")


if __name__ == "__main__":
    mounting.main()
