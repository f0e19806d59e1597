#include "frame/remote/http/address.h"

#include <gtest/gtest.h>

#include "frame/remote/remote_source.h"

namespace cframefs::test {
namespace {

using frame::Address;
using frame::parse_address;

/// The reason for which an address is refused; empty if it is not.
std::string refusal(const std::string& text) {
  const auto address = parse_address(text);
  if (address) return "";
  EXPECT_EQ(address.error().kind, codec::ErrorKind::invalid) << text;
  return address.error().reason;
}

void expect_refused(const std::string& text, const std::string& because) {
  EXPECT_NE(refusal(text).find(because), std::string::npos) << text << ": \"" << refusal(text) << '"';
}

TEST(Address, SplitsAWebAddress) {
  const auto address = parse_address("https://Data.Example.ORG:8443/a/b%20c.b2frame?X-Amz-Expires=60&sig=%2F");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->scheme, Address::Scheme::https);
  EXPECT_EQ(address->host, "data.example.org");
  EXPECT_EQ(address->port, 8443);
  EXPECT_EQ(address->path, "/a/b%20c.b2frame");
  EXPECT_EQ(address->query, "X-Amz-Expires=60&sig=%2F");
  EXPECT_EQ(address->user, "");
  EXPECT_EQ(address->url(), "https://data.example.org:8443/a/b%20c.b2frame?X-Amz-Expires=60&sig=%2F");
  EXPECT_EQ(address->origin(), "https://data.example.org:8443");
  EXPECT_FALSE(address->is_directory());
}

TEST(Address, SchemesAreReadInAnyCase) {
  EXPECT_EQ(parse_address("HTTP://h/")->scheme, Address::Scheme::http);
  EXPECT_EQ(parse_address("HttpS://h/")->scheme, Address::Scheme::https);
  EXPECT_EQ(parse_address("S3://bucket/")->scheme, Address::Scheme::s3);
  EXPECT_TRUE(frame::is_address("HTTP://h"));
  EXPECT_TRUE(frame::is_address("https://"));
  EXPECT_TRUE(frame::is_address("S3://"));
}

TEST(Address, PathsAreNoAddresses) {
  for (const char* path : {"", "s3:/bucket", "http:", "/http://h", "./s3://x", "ftp://h/", "file:///x", "httpx://h"}) {
    EXPECT_FALSE(frame::is_address(path)) << path;
    expect_refused(path, "http://, https:// or s3://");
  }
}

TEST(Address, TheUsualPortOfTheSchemeIsLeftOut) {
  EXPECT_EQ(parse_address("https://h:443/x")->url(), "https://h/x");
  EXPECT_EQ(parse_address("http://h:80/x")->url(), "http://h/x");
  EXPECT_EQ(parse_address("http://h:443/x")->url(), "http://h:443/x");
  EXPECT_EQ(parse_address("http://h:/x")->url(), "http://h/x");
}

TEST(Address, ADirectoryEndsInASlash) {
  EXPECT_TRUE(parse_address("https://h/data/")->is_directory());
  EXPECT_TRUE(parse_address("https://h/data/?sort=name")->is_directory());
  EXPECT_TRUE(parse_address("https://h")->is_directory());
  EXPECT_EQ(parse_address("https://h")->url(), "https://h/");
  EXPECT_EQ(parse_address("https://h?q=1")->url(), "https://h/?q=1");
  EXPECT_FALSE(parse_address("https://h/data")->is_directory());
  EXPECT_TRUE(parse_address("s3://bucket")->is_directory());
  EXPECT_TRUE(parse_address("s3://bucket/")->is_directory());
  EXPECT_TRUE(parse_address("s3://bucket/prefix/")->is_directory());
  EXPECT_FALSE(parse_address("s3://bucket/prefix")->is_directory());
}

TEST(Address, CharactersThatNoUrlMayHaveAreEncoded) {
  EXPECT_EQ(parse_address("https://h/gr\xc3\xb6\xc3\x9f"
                          "e 1.b2frame")
                ->path,
            "/gr%C3%B6%C3%9F"
            "e%201.b2frame");
  EXPECT_EQ(parse_address("https://h/a%20b")->path, "/a%20b");
  EXPECT_EQ(parse_address("https://h/x?a={b}")->query, "a=%7Bb%7D");
}

TEST(Address, AFragmentIsNotSent) {
  EXPECT_EQ(parse_address("https://h/x?q=1#part")->url(), "https://h/x?q=1");
  EXPECT_EQ(parse_address("https://h/x%23y#part")->path, "/x%23y");
}

TEST(Address, UserAndPasswordAreDecodedAndNeverShown) {
  const auto address = parse_address("https://us%40er:pa%2Fss:w@host:1/x?token=abc#part");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->user, "us@er");
  EXPECT_EQ(address->password, "pa/ss:w");
  EXPECT_EQ(address->host, "host");
  EXPECT_EQ(address->shown(), "https://host:1/x");
  EXPECT_EQ(address->url(), "https://host:1/x?token=abc");
  EXPECT_EQ(parse_address("https://user@host/")->user, "user");
  EXPECT_EQ(parse_address("https://user@host/")->password, "");
}

TEST(Address, RefusalsShowNoPasswordAndNoQuery) {
  for (const char* text :
       {"https://user:sesame/x@host/", "https://user:sesame@ho st/", "https://user:sesame@host:99999/",
        "https://user:sesame%zz@host/", "https://:sesame@host/", "https://user:sesame@host/../x",
        "s3://user:sesame@bucket/x", "https://user:sesame#x@host/", "https://user:sesame@/", "https://u%0a:sesame@h/",
        "https://h/%zz?sesame", "https://h/\x01?sesame", "https://user:sesame@[::1/", "https://user:sesame?@host/"}) {
    const std::string reason = refusal(text);
    EXPECT_NE(reason, "") << text;
    EXPECT_EQ(reason.find("sesame"), std::string::npos) << reason;
  }
}

TEST(Address, Ipv6HostsKeepTheirBrackets) {
  const auto address = parse_address("http://[FE80::1]:8080/x");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "[fe80::1]");
  EXPECT_EQ(address->url(), "http://[fe80::1]:8080/x");
  expect_refused("http://[::1/x", "']'");
  expect_refused("http://[]/x", "no IPv6 address");
  expect_refused("http://[1.2.3.4]/x", "no IPv6 address");
  expect_refused("http://[fe80::1%25eth0]/x", "no IPv6 address");
  expect_refused("http://[::1]x/", "after the host");
}

TEST(Address, PortsAreOneTo65535) {
  EXPECT_EQ(parse_address("http://h:1/")->port, 1);
  EXPECT_EQ(parse_address("http://h:65535/")->port, 65535);
  expect_refused("http://h:0/", "65535");
  expect_refused("http://h:65536/", "65536");
  expect_refused("http://h:18446744073709551617/", "65535");
  expect_refused("http://h:-1/", "no number");
  expect_refused("http://h:8o/", "no number");
}

TEST(Address, HostsHaveValidCharactersAndLengths) {
  expect_refused("http:///x", "no host");
  expect_refused("http://:80/x", "no host");
  expect_refused("http://a..b/", "empty part");
  expect_refused("http://.b/", "empty part");
  expect_refused("http://a b/", "other characters");
  expect_refused("http://a%2eb/", "other characters");
  expect_refused(
      "http://b\xc3\xbc"
      "cher/",
      "xn--");
  expect_refused("http://a,b/", "other characters");
  EXPECT_EQ(refusal("http://my_host-1.example.org./"), "");
  EXPECT_EQ(refusal("http://" + std::string(63, 'a') + "/"), "");
  expect_refused("http://" + std::string(64, 'a') + "/", "63");
  std::string longest;
  for (int i = 0; i < 126; ++i)
    longest += "a.";
  EXPECT_EQ(refusal("http://" + longest + "a/"), "");
  expect_refused("http://" + longest + "aa/", "253");
}

TEST(Address, DotSegmentsAreRefusedInEveryForm) {
  for (const char* path : {"/..", "/../x", "/a/../b", "/a/./b", "/.", "/a/..", "/%2e%2e/x", "/a/.%2E", "/a%2f..%2fb"})
    expect_refused(std::string("https://h") + path, "\"..\"");
  for (const char* key : {"..", "a/../b", "./a", "a/."})
    expect_refused(std::string("s3://bucket/") + key, "\"..\"");
  EXPECT_EQ(refusal("https://h/...a/b..c/.d"), "");
  EXPECT_EQ(refusal("s3://bucket/a/...b/.c"), "");
}

TEST(Address, ControlCharactersAndBrokenEncodingsAreRefused) {
  expect_refused("https://h/a\nb", "control character");
  expect_refused("https://h/a\r\nHost: x", "control character");
  expect_refused(std::string("https://h/a\0b", 13), "control character");
  expect_refused("s3://bucket/a\x7f", "control character");
  expect_refused("https://h/a%00b", "NUL");
  expect_refused("https://h/100%", "'%'");
  expect_refused("https://u%0d%0ax:p@h/", "control character");
}

TEST(Address, LengthIsBounded) {
  EXPECT_EQ(refusal("https://h/" + std::string(8182, 'a')), "");
  expect_refused("https://h/" + std::string(8183, 'a'), "8193");
  EXPECT_EQ(refusal("s3://bucket/" + std::string(1024, 'a')), "");
  expect_refused("s3://bucket/" + std::string(1025, 'a'), "1025");
}

TEST(Address, KeysAreTakenAsTheyAre) {
  const auto address = parse_address("s3://my.bucket-1/pre fix/100%25 50%?x#y/\xc3\xbc.b2frame");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->bucket, "my.bucket-1");
  EXPECT_EQ(address->key, "pre fix/100%25 50%?x#y/\xc3\xbc.b2frame");
  EXPECT_EQ(address->shown(), "s3://my.bucket-1/pre fix/100%25 50%?x#y/\xc3\xbc.b2frame");
  expect_refused("s3://bucket/\xff", "UTF-8");
}

TEST(Address, BucketsHaveTheNamesThatS3Allows) {
  for (const char* name : {"abc", "a.b-c.1", "123"})
    EXPECT_EQ(refusal(std::string("s3://") + name + "/x"), "") << name;
  EXPECT_EQ(refusal("s3://" + std::string(63, 'a')), "");
  expect_refused("s3://", "no bucket");
  expect_refused("s3:///key", "no bucket");
  expect_refused("s3://ab/x", "3 to 63");
  expect_refused("s3://" + std::string(64, 'a'), "3 to 63");
  expect_refused("s3://Bucket/x", "lower-case");
  expect_refused("s3://my_bucket/x", "lower-case");
  expect_refused("s3://bucket:80/x", "lower-case");
  expect_refused("s3://-bucket/x", "begin and end");
  expect_refused("s3://bucket./x", "begin and end");
  expect_refused("s3://a..b/x", "two dots");
  expect_refused("s3://192.168.1.1/x", "IP address");
}

TEST(Address, AddressesAreShownWithoutSecretsEvenIfTheyAreWrong) {
  EXPECT_EQ(frame::shown_address("https://me:secret@host/x.b2frame?key=secret#part"), "https://host/x.b2frame");
  EXPECT_EQ(frame::shown_address("s3://bucket/a?b"), "s3://bucket/a?b");
  // Ports that are none.
  EXPECT_EQ(frame::shown_address("https://me:secret@host:x/x?key=secret"), "https://host:x/x");
  EXPECT_EQ(frame::shown_address("https://a@b:secret@host:99999/"), "https://host:99999/");
  EXPECT_EQ(frame::shown_address("/a/path"), "/a/path");
}

TEST(Address, LoopbackHostsAreThoseOfThisMachineOnly) {
  for (const char* host : {"localhost", "127.0.0.1", "127.255.255.254", "[::1]", "[0:0:0:0:0:0:0:1]"})
    EXPECT_TRUE(frame::is_loopback(host)) << host;
  for (const char* host : {"", "localhost.example.org", "128.0.0.1", "127.0.0.1.example.org", "[::2]", "[::]", "127.1",
                           "[::ffff:127.0.0.1]", "0.0.0.0", "["})
    EXPECT_FALSE(frame::is_loopback(host)) << host;
}

TEST(AddressTest, EntriesOfADirectoryHaveAddresses) {
  EXPECT_EQ(frame::address_of_entry("s3://bucket/data/", "a b%?#.b2frame"), "s3://bucket/data/a b%?#.b2frame");
  EXPECT_EQ(frame::address_of_entry("s3://bucket", "x"), "s3://bucket/x");
  EXPECT_EQ(frame::address_of_entry("https://u:p@host/data/?key=1", "a b%"), "https://u:p@host/data/a%20b%25");
  EXPECT_EQ(frame::part_below("s3://bucket/data/a b", "s3://bucket/data/"), "a b");
  EXPECT_EQ(frame::part_below("s3://bucket/data/a/b", "s3://bucket/data"), "a/b");
  EXPECT_EQ(frame::part_below("https://u:p@host/data/a%20b%25", "https://u:p@host/data/?key=1"), "a%20b%25");
  for (const char* other : {"s3://bucket/database", "s3://bucket/data", "s3://bucket/data/", "s3://bucket", "x", ""}) {
    EXPECT_FALSE(frame::part_below(other, "s3://bucket/data/")) << other;
  }
}

}  // namespace
}  // namespace cframefs::test
