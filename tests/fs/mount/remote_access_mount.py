"""Who may read what lies on a server: signatures, tokens, passwords, certificates; and that the program tells no secret."""

import base64
import json
import os
import shutil
import time
import unittest

import mounting
from mounting import pread
# First of the two: it says where the other one is.
from remote_sources import KEY, MIB, SECRET, Key, Served, is_error, noise, outcome, whole
from object_service import ObjectService, make_certificate

TOKEN = "SessionToken0123456789abcdefghijklmnopqrstuvwxyz="
BEARER = "bearer-0123456789-abcdefghijklmnopqrstuvwxyz"


class Access(Served):
    """The base of the classes below."""

    def setUp(self):
        super().setUp()
        self.content = noise(3, 12 * MIB)
        self.service.put("d/x.b2frame", self.packed(self.content))

    def write(self, name, text, mode=0o600):
        path = f"{self.home}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def write_profiles(self, **profiles):
        """~/.aws/credentials: name=(key, secret[, token])."""
        fields = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        self.write(".aws/credentials", "\n".join(
            f"[{name}]\n" + "".join(f"{field} = {value}\n" for field, value in zip(fields, values))
            for name, values in profiles.items()))

    def check_reads(self, address, *options, secrets=(), environment=None):
        """Everything is right, and no secret is where others could read it."""
        with self.mount(address, "stats=on", "log_level=debug", *options, environment=environment) as mount:
            self.assertEqual(os.listdir(mount.path), ["x"])
            self.assertTrue(whole(mount / "x") == self.content)
            told = {name: whole(mount / f".cframefs/{name}") for name in ("stats.json", "config", "metrics", "busiest.json")}
            told["/proc/mounts"] = whole("/proc/mounts")
            told["mountinfo"] = whole("/proc/self/mountinfo")
            told["arguments"] = whole(f"/proc/{mount.daemon.pid}/cmdline")
            told["log"] = "\n".join(mount.all_lines()).encode()
            for child in mounting.guards_of(mount.path):
                told["guard"] = whole(f"/proc/{child}/cmdline")
        for place, text in told.items():
            for secret in (SECRET, TOKEN, BEARER, *secrets):
                self.assertNotIn(secret.encode(), text, place)

    def check_denied(self, address, *options, reason, environment=None):
        """The mount is refused with EACCES, or its listing is; the reason is told, no secret is."""
        listed, said = self.refused(address, *options, environment=environment)
        if listed is None:
            self.assertIn("Permission denied", said)
        else:
            self.assertEqual(listed, "error EACCES")
        self.assertRegex(said, reason)
        for secret in (SECRET, TOKEN, BEARER):
            self.assertNotIn(secret, said)


class BucketAccess(Access):
    def test_a_right_signature(self):
        for address in ("s3://bucket/d/", "s3://bucket/d/x.b2frame"):
            self.check_reads(address)
        # Nothing was asked in vain.
        self.assertEqual([request.path for request in self.service.log if request.status in (401, 403)], [])

    def test_names_that_a_signature_must_encode(self):
        name = "e/ü (1)+'*!~&=@:$,;/x.b2frame"
        self.service.put(name, self.packed(self.content))
        self.check_reads("s3://bucket/" + name)
        self.check_reads("s3://bucket/" + os.path.dirname(name))

    def test_wrong_signatures(self):
        # semantics: P15
        for address in ("s3://bucket/d/", "s3://bucket/d/x.b2frame"):
            self.check_denied(address, reason="SignatureDoesNotMatch", environment={"AWS_SECRET_ACCESS_KEY": "wrong"})
            self.check_denied(address, reason="InvalidAccessKeyId", environment={"AWS_ACCESS_KEY_ID": "UNKNOWN"})

    def test_a_clock_that_is_wrong(self):
        self.service.clock = 20 * 60
        self.check_denied("s3://bucket/d/", reason="RequestTimeTooSkewed")

    def test_no_credentials(self):
        self.credentials = {}
        self.check_denied("s3://bucket/d/", reason="(?i)credentials")
        self.assertEqual(self.service.log, [], "a request without a signature was sent")

    def test_session_tokens(self):
        self.service.keys[KEY] = Key(SECRET, TOKEN)
        self.check_reads("s3://bucket/d/", environment={"AWS_SESSION_TOKEN": TOKEN})
        self.check_denied("s3://bucket/d/", reason="InvalidToken", environment={"AWS_SESSION_TOKEN": "wrong"})
        self.service.keys[KEY].is_expired = True
        self.check_denied("s3://bucket/d/", reason="ExpiredToken", environment={"AWS_SESSION_TOKEN": TOKEN})

    def test_unsigned(self):
        self.check_denied("s3://bucket/d/", "unsigned", reason="AccessDenied")
        self.service.buckets.is_public = True
        self.service.clear_log()
        self.check_reads("s3://bucket/d/", "unsigned")
        self.assertFalse(any("authorization" in request.headers for request in self.service.log))

    def test_a_bucket_that_is_not_there(self):
        listed, said = self.refused("s3://other-bucket/")
        self.assertIn(listed, (None, "error ENOENT"))
        self.assertIn("NoSuchBucket", said)

    def test_the_wrong_region_is_named(self):
        listed, said = self.refused("s3://bucket/d/", "region=eu-west-3")
        self.assertTrue(listed is None or is_error(listed))
        self.assertIn("us-east-1", said)

    def test_the_environment_names_the_service_and_the_region(self):
        place = {"AWS_ENDPOINT_URL": self.service.url(), "AWS_REGION": "us-east-1"}
        with mounting.Mount("s3://bucket/d/", environment=self.environment(**place)) as mount:
            self.assertTrue(whole(mount / "x") == self.content)

    def test_profiles(self):
        self.credentials = {}
        self.service.keys["OTHER"] = Key("other-secret", TOKEN)
        self.write_profiles(default=(KEY, SECRET), other=("OTHER", "other-secret", TOKEN), wrong=(KEY, "wrong"))
        self.check_reads("s3://bucket/d/")
        self.check_reads("s3://bucket/d/", "profile=other", secrets=["other-secret"])
        self.check_reads("s3://bucket/d/", environment={"AWS_PROFILE": "other"}, secrets=["other-secret"])
        self.check_denied("s3://bucket/d/", "profile=wrong", reason="SignatureDoesNotMatch")
        listed, said = self.refused("s3://bucket/d/", "profile=absent")
        self.assertTrue(listed is None or is_error(listed))
        self.assertIn("absent", said)

    def test_a_program_that_knows_the_credentials(self):
        self.credentials = {}
        answer = json.dumps({"Version": 1, "AccessKeyId": KEY, "SecretAccessKey": SECRET})
        program = self.write("knows", f"#!/bin/sh\necho '{answer}'\n", 0o700)
        self.write(".aws/config", f"[default]\ncredential_process = {program}\n")
        self.check_reads("s3://bucket/d/")

    def test_the_endpoint_of_a_container(self):
        self.credentials = {}
        self.service.keys[KEY] = Key(SECRET, TOKEN)
        self.service.put("credentials.json", json.dumps({
            "AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": TOKEN,
            "Expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))}).encode())
        self.check_reads("s3://bucket/d/", environment={"AWS_CONTAINER_CREDENTIALS_FULL_URI": self.web("credentials.json")})

    def test_expired_credentials_are_read_again(self):
        """No reader sees that they have expired, if there are new ones."""
        self.credentials = {}
        self.service.keys[KEY] = Key(SECRET, TOKEN)
        self.write_profiles(default=(KEY, SECRET, TOKEN))
        with self.mount("s3://bucket/d/", "readahead=0", "remote_ttl=0", "remote_timeout=5") as mount:
            with open(mount / "x", "rb", buffering=0) as file:
                self.assertEqual(os.pread(file.fileno(), 4096, 0), self.content[:4096])
                # Credentials that were read a moment ago are not read again.
                time.sleep(2.5)
                self.service.keys[KEY].is_expired = True
                self.service.keys["RENEWED"] = Key("renewed-secret", "renewed-token")
                self.write_profiles(default=("RENEWED", "renewed-secret", "renewed-token"))
                self.assertEqual(os.pread(file.fileno(), 4096, 9 * MIB), self.content[9 * MIB : 9 * MIB + 4096])
            self.assertEqual(os.listdir(mount.path), ["x"])
            # Without new ones it is an error, until there are some.
            self.service.keys["RENEWED"].is_expired = True
            self.service.delete("d/x.b2frame")
            self.service.put("d/y.b2frame", self.packed(b"new"))
            mounting.wait_for(lambda: outcome(os.listdir, mount.path) == "error EACCES", what="an error")
            self.service.keys["RENEWED"].is_expired = False
            mounting.wait_for(lambda: outcome(os.listdir, mount.path) == ["y"], what="the mount to be as before")


class WebAccess(Access):
    def test_token_files(self):
        self.service.web_token = BEARER
        right = self.write("token", BEARER + "\n")
        for address in (self.web("d/"), self.web("d/x.b2frame")):
            self.check_reads(address, "token_file=" + right)
            self.check_denied(address, "token_file=" + self.write("wrong", "another-token\n"), reason="401")
            self.check_denied(address, reason="401")

    def test_token_files_that_are_no_secret(self):
        self.service.web_token = BEARER
        for path, reason in ((self.write("open", BEARER, 0o644), "open"), (self.home + "/absent", "absent")):
            listed, said = self.refused(self.web("d/"), "token_file=" + path)
            self.assertTrue(listed is None or is_error(listed))
            self.assertIn(reason, said)
            self.assertNotIn(BEARER, said)
        self.assertFalse(any("authorization" in request.headers for request in self.service.log))

    def test_a_token_file_that_changes(self):
        self.service.web_token = BEARER
        path = self.write("token", BEARER)
        with self.mount(self.web("d/"), "token_file=" + path, "readahead=0", "remote_timeout=5") as mount:
            self.assertEqual(pread(mount / "x", 0, 4096), self.content[:4096])
            self.service.web_token = "another-token"
            self.write("token", "another-token")
            at = 9 * MIB
            mounting.wait_for(lambda: outcome(pread, mount / "x", at, 4096) == self.content[at : at + 4096], what="the new token")

    def test_the_token_goes_to_no_other_server(self):
        self.service.web_token = BEARER
        with ObjectService() as other:
            other.put("x.b2frame", self.packed(b"elsewhere"))
            self.service.faults.add("redirect", "d/x.b2frame", to=other.url("/web/x.b2frame"))
            # The sandbox permits no connection to the other port (remote_sandbox_mount).
            with self.mount(self.web("d/"), "sandbox=off", "token_file=" + self.write("token", BEARER),
                            "remote_timeout=2") as mount:
                outcome(whole, mount / "x")
            self.assertGreater(len(other.log), 0)
            self.assertFalse(any(BEARER in str(request.headers) for request in other.log))

    def test_netrc(self):
        self.service.web_user = base64.b64encode(b"me:pass word").decode()
        self.check_denied(self.web("d/"), reason="401")
        self.write(".netrc", 'machine 127.0.0.1\nlogin me\npassword "pass word"\n')
        self.check_reads(self.web("d/"), secrets=["pass word", self.service.web_user])

    def test_users_and_queries_of_addresses_are_not_shown(self):
        # semantics: P15
        """What is on the command line is there; the kernel's table and the log are others' to read."""
        self.service.web_user = base64.b64encode(b"me:secret-password").decode()
        address = self.web("d/x.b2frame").replace("http://", "http://me:secret-password@") + "?sig=secret-query"
        with self.mount(address, "stats=on", "log_level=debug") as mount:
            self.assertEqual(os.listdir(mount.path), ["x"])
            self.assertTrue(whole(mount / "x") == self.content)
            told = [whole("/proc/mounts"), "\n".join(mount.all_lines()).encode()]
            told += [whole(mount / f".cframefs/{name}") for name in ("stats.json", "config", "metrics", "busiest.json")]
        for text in told:
            self.assertNotIn(b"secret-password", text)
            self.assertNotIn(b"secret-query", text)
        self.assertEqual({request.query.get("sig") for request in self.service.log}, {"secret-query"})


@unittest.skipUnless(shutil.which("openssl"), "needs openssl")
class Certificates(Access):
    def setUp(self):
        super().setUp()
        self.service.stop()
        self.service.certificate = self.work + "/pem"
        make_certificate(self.service.certificate)
        self.service.start()

    def test_a_server_must_be_vouched_for(self):
        for address in (self.web("d/"), "s3://bucket/d/"):
            listed, said = self.refused(address)
            self.assertTrue(listed is None or is_error(listed))
            self.assertRegex(said, "(?i)certificate")
            self.assertNotIn("missing", said)  # the system's are read, and do not vouch for it
            self.assertIn("after 3 attempts", said)
            self.assertEqual(self.service.log, [])

    def test_a_file_without_certificates(self):
        """Asking again would not help."""
        path = self.write("none.pem", "no certificate\n")
        for address in (self.web("d/"), "s3://bucket/d/"):
            listed, said = self.refused(address, "ca_file=" + path)
            self.assertTrue(listed is None or is_error(listed))
            self.assertIn("ca_file holds no certificate in PEM format", said)
            self.assertNotIn("attempts", said)
        self.assertEqual(self.service.log, [])

    def test_an_own_certificate(self):
        for address in (self.web("d/"), "s3://bucket/d/"):
            self.check_reads(address, "ca_file=" + self.service.certificate)


if __name__ == "__main__":
    mounting.main(hang_seconds=600)
