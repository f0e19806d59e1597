// The command line of cframefs, case by case.
#include "tools/cframefs/mount_options.h"

#include <gtest/gtest.h>

namespace cframefs::test {
namespace {

using fs::MountOptions;
using tools::MountAction;
using tools::parse_mount_command;
using Arguments = std::vector<std::string>;

MountOptions parse(const Arguments& arguments) {
  const auto command = parse_mount_command(arguments);
  EXPECT_TRUE(command) << command.error().reason;
  return command ? command->options : MountOptions{};
}

MountOptions with(const std::string& options) {
  return parse({"-o", options, "src", "mnt"});
}

std::string error_of(const Arguments& arguments) {
  const auto command = parse_mount_command(arguments);
  EXPECT_FALSE(command);
  if (command) return "";
  EXPECT_EQ(command.error().kind, codec::ErrorKind::invalid);
  EXPECT_EQ(command.error().reason.find('\n'), std::string::npos) << command.error().reason;
  return command.error().reason;
}

TEST(MountOptions, DefaultsAreThoseOfTheStruct) {
  const MountOptions options = parse({"src", "mnt"});
  EXPECT_EQ(options.source, "src");
  EXPECT_EQ(options.mountpoint, "mnt");
  EXPECT_EQ(options.names, fs::Names::strip);
  EXPECT_EQ(options.b2nd, fs::ArrayView::npy);
  EXPECT_EQ(options.detect, fs::Detect::suffix);
  EXPECT_FALSE(options.read_only || options.daemon.foreground || options.daemon.debug || options.daemon.single_thread);
  EXPECT_FALSE(options.cache_size);
  EXPECT_TRUE(options.daemon.fuse_options.empty());
}

TEST(MountOptions, ComeInAnyPlaceAndForm) {
  for (const Arguments& arguments :
       {Arguments{"-o", "ro,workers=3", "src", "mnt", "-f"}, Arguments{"src", "mnt", "-f", "-oro,workers=3"},
        Arguments{"src", "-o", "workers=3", "mnt", "-o", "ro", "-f"},
        Arguments{"-f", "-oro", "-oworkers=3", "--", "src", "mnt"},
        Arguments{"-f", "-o", "rw,,workers=7", "-o", "ro,workers=3,", "src", "mnt"}}) {
    const MountOptions options = parse(arguments);
    EXPECT_EQ(options.source, "src");
    EXPECT_EQ(options.mountpoint, "mnt");
    EXPECT_TRUE(options.read_only);
    EXPECT_TRUE(options.daemon.foreground);
    EXPECT_EQ(options.workers, 3U);
  }
  EXPECT_EQ(parse({"--", "-src", "-mnt"}).source, "-src");
}

TEST(MountOptions, SwitchesWork) {
  EXPECT_TRUE(parse({"-s", "src", "mnt"}).daemon.single_thread);
  EXPECT_TRUE(parse({"-d", "src", "mnt"}).daemon.debug);
  EXPECT_TRUE(parse({"-d", "src", "mnt"}).daemon.foreground);
  EXPECT_TRUE(with("debug").daemon.debug);
  for (const char* word : {"-h", "--help"})
    EXPECT_EQ(parse_mount_command({word})->action, MountAction::show_help);
  for (const char* word : {"-V", "--version"})
    EXPECT_EQ(parse_mount_command({"x", word})->action, MountAction::show_version);
}

TEST(MountOptions, EveryValueArrives) {
  EXPECT_EQ(with("names=keep").names, fs::Names::keep);
  EXPECT_EQ(with("b2nd=flat").b2nd, fs::ArrayView::flat);
  EXPECT_EQ(with("b2nd=chunks").b2nd, fs::ArrayView::chunks);
  EXPECT_EQ(with("detect=content").detect, fs::Detect::content);
  EXPECT_EQ(with("offset=4096").offset, 4096U);
  EXPECT_FALSE(with("beta_bitshuffle=new").old_bitshuffle);
  EXPECT_TRUE(with("beta_bitshuffle=old").old_bitshuffle);
  EXPECT_EQ(with("cache_size=64M").cache_size, std::uint64_t{64} << 20);
  EXPECT_EQ(with("cache_size=2G").cache_size, std::uint64_t{2} << 30);
  EXPECT_EQ(with("readahead=0").readahead, 0U);
  EXPECT_EQ(with("readahead=off").readahead, 0U);
  EXPECT_EQ(with("readahead=16MiB").readahead, std::uint64_t{16} << 20);
  EXPECT_TRUE(with("stats=on").statistics);
  EXPECT_FALSE(with("stats=on,stats=off").statistics);
  EXPECT_EQ(with("codec=lz4hc").new_frames.codec, "lz4hc");
  EXPECT_EQ(with("clevel=9").new_frames.clevel, 9);
  EXPECT_EQ(with("filter=delta+shuffle").new_frames.filter, "delta+shuffle");
  EXPECT_EQ(with("filter=none,filter=auto").new_frames.filter, "auto");
  EXPECT_EQ(with("filter=none").new_frames.filter, "none");
  EXPECT_EQ(with("typesize=8").new_frames.typesize, 8U);
  EXPECT_EQ(with("typesize=8,typesize=auto").new_frames.typesize, 0U);
  EXPECT_EQ(with("chunksize=1M").new_frames.chunksize, std::uint64_t{1} << 20);
  EXPECT_EQ(with("blocksize=64k").new_frames.blocksize, std::uint64_t{64} << 10);
  EXPECT_TRUE(with("new_npy=b2nd").new_frames.npy_as_array);
  EXPECT_FALSE(with("new_npy=b2nd,new_npy=frame").new_frames.npy_as_array);
  EXPECT_EQ(with("ro").new_frames.checksums, fs::Checksums::on);
  EXPECT_EQ(with("checksums=keep").new_frames.checksums, fs::Checksums::keep);
  EXPECT_EQ(with("checksums=off").new_frames.checksums, fs::Checksums::off);
  EXPECT_EQ(with("dirty_limit=256M").dirty_limit, std::uint64_t{256} << 20);
  EXPECT_EQ(with("commit_interval=0.5").commit_interval, 0.5);
  EXPECT_TRUE(with("writeback=on").kernel_cache.writeback);
  EXPECT_TRUE(with("ro").kernel_cache.fill_pages);
  EXPECT_FALSE(with("fill_pages=off").kernel_cache.fill_pages);
  EXPECT_TRUE(with("ro").kernel_cache.passthrough);
  EXPECT_TRUE(with("passthrough=off,passthrough=auto").kernel_cache.passthrough);
  EXPECT_FALSE(with("passthrough=off").kernel_cache.passthrough);
  EXPECT_EQ(with("attr_timeout=0").kernel_cache.attr_timeout, 0.0);
  EXPECT_EQ(with("entry_timeout=2.5").kernel_cache.entry_timeout, 2.5);
  EXPECT_EQ(with("uid=1000").shown.user, 1000U);
  EXPECT_EQ(with("gid=0").shown.group, 0U);
  EXPECT_EQ(with("umask=027").shown.umask, 027U);
  EXPECT_FALSE(with("ro").shown.are_set());
  EXPECT_EQ(with("idle_timeout=2.5").daemon.idle_timeout, 2.5);
  EXPECT_EQ(with("idle_timeout=off").daemon.idle_timeout, 0.0);
  EXPECT_EQ(with("ro").daemon.cache_timeout, 60.0);
  EXPECT_EQ(with("cache_timeout=0").daemon.cache_timeout, 0.0);
  EXPECT_EQ(with("log=syslog").daemon.log, "syslog");
  EXPECT_EQ(with("log=/var/log/a").daemon.log, "/var/log/a");
  EXPECT_TRUE(with("log=a").daemon.log.starts_with('/') && with("log=a").daemon.log.ends_with("/a"));
  EXPECT_EQ(with("sandbox=strict").daemon.sandbox, fs::Sandboxing::strict);
  EXPECT_EQ(with("log_level=warning").daemon.log_level, fs::LogLevel::warning);
  EXPECT_TRUE(with("nonempty").daemon.nonempty);
  EXPECT_FALSE(with("ro").daemon.mkdir);
  EXPECT_EQ(with("mkdir").daemon.mkdir, 0755U);
  EXPECT_EQ(with("X-mount.mkdir").daemon.mkdir, 0755U);
  EXPECT_EQ(with("X-mount.mkdir=0700").daemon.mkdir, 0700U);
}

TEST(MountOptions, ThoseOfServersArrive) {
  using std::chrono::milliseconds;
  const frame::RemoteOptions usual = with("ro").remote;
  EXPECT_EQ(usual.ttl, milliseconds(60'000));
  EXPECT_EQ(usual.timeout, milliseconds(60'000));
  EXPECT_EQ(usual.cache_disk, std::uint64_t{10} << 30);
  EXPECT_FALSE(usual.is_unsigned);
  EXPECT_EQ(with("endpoint=http://localhost:9000").remote.endpoint, "http://localhost:9000");
  EXPECT_EQ(with("region=eu-west-1").remote.region, "eu-west-1");
  EXPECT_EQ(with("profile=lab").remote.profile, "lab");
  EXPECT_TRUE(with("unsigned").remote.is_unsigned);
  EXPECT_EQ(with("token_file=/run/token").remote.token_file, "/run/token");
  EXPECT_EQ(with("ca_file=/etc/ca.pem").remote.ca_file, "/etc/ca.pem");
  // The daemon changes its working directory.
  const std::string relative = with("cache_dir=a").remote.cache_dir;
  EXPECT_TRUE(relative.starts_with('/') && relative.ends_with("/a")) << relative;
  EXPECT_EQ(with("cache_disk=64M").remote.cache_disk, std::uint64_t{64} << 20);
  EXPECT_EQ(with("remote_ttl=0").remote.ttl, milliseconds(0));
  EXPECT_EQ(with("remote_timeout=2.5").remote.timeout, milliseconds(2'500));
  EXPECT_TRUE(usual.uses_index);
  EXPECT_FALSE(with("remote_index=off").remote.uses_index);
  EXPECT_TRUE(with("remote_index=on").remote.uses_index);
}

TEST(MountOptions, EveryOptionHasABadValueThatIsRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> bad = {{"names", "x"},           {"b2nd", "x"},
                                                                {"detect", "x"},          {"offset", "-1"},
                                                                {"beta_bitshuffle", "1"}, {"cache_size", "1023K"},
                                                                {"readahead", "x"},       {"workers", "0"},
                                                                {"codec", "snappy"},      {"clevel", "10"},
                                                                {"filter", "shuffel"},    {"typesize", "0"},
                                                                {"chunksize", "2G"},      {"blocksize", "1G"},
                                                                {"dirty_limit", "0"},     {"commit_interval", "-1"},
                                                                {"writeback", "maybe"},   {"stats", "yes"},
                                                                {"attr_timeout", "x"},    {"entry_timeout", "inf"},
                                                                {"uid", "root"},          {"gid", "4294967295"},
                                                                {"umask", "8"},           {"idle_timeout", "-1"},
                                                                {"cache_timeout", "x"},   {"log", ""},
                                                                {"log_level", "all"},     {"sandbox", "on"},
                                                                {"new_npy", "npy"},       {"checksums", "yes"},
                                                                {"endpoint", "ftp://h"},  {"region", ""},
                                                                {"profile", ""},          {"token_file", ""},
                                                                {"ca_file", ""},          {"cache_dir", ""},
                                                                {"cache_disk", "1M"},     {"remote_ttl", "-1"},
                                                                {"remote_timeout", "0"},  {"remote_index", "yes"},
                                                                {"fill_pages", "maybe"},  {"passthrough", "on"}};
  std::vector<std::string> tried = {"ro", "rw", "mkdir", "nonempty", "remount", "unsigned"};
  for (const auto& [name, value] : bad) {
    const std::string message = error_of({"-o", name + "=" + value, "src", "mnt"});
    EXPECT_TRUE(message.starts_with("option '" + name + "=" + value + "': ")) << message;
    EXPECT_NE(error_of({"-o", name, "src", "mnt"}).find("takes a value"), std::string::npos);
    tried.push_back(name);
  }
  for (const std::string& name : tools::mount_option_names()) {
    EXPECT_NE(std::find(tried.begin(), tried.end(), name), tried.end()) << name << " is not tested";
  }
}

TEST(MountOptions, BadValuesOfAllKinds) {
  for (const char* option : {"cache_size=",
                             "cache_size=1MB",
                             "cache_size=1 M",
                             "cache_size=0x10M",
                             "cache_size=99999999999999999999",
                             "cache_size=17179869184G",
                             "cache_size=-1M",
                             "cache_size=M",
                             "cache_size=iB",
                             "cache_size=5iB",
                             "workers=1025",
                             "workers=1K",
                             "clevel=-1",
                             "clevel=5.5",
                             "filter=",
                             "filter=+",
                             "filter=none+shuffle",
                             "filter=delta+delta+delta+delta+delta+delta+shuffle",
                             "filter=trunc_prec(12)",  // loses bits
                             "commit_interval=nan",
                             "commit_interval=1e",
                             "commit_interval=1000000001",  // its milliseconds would be more than can be counted
                             "entry_timeout=99999999999999999999999999999999",
                             "umask=",
                             "umask=1777",
                             "uid=",
                             "uid=-1",
                             "mkdir=0700",
                             "X-mount.mkdir=rwx",
                             "nonempty=1",
                             "ro=1",
                             "rw=",
                             "names",
                             "Names=keep",
                             "offset=9223372036854775808"}) {
    EXPECT_NE(error_of({"-o", option, "src", "mnt"}), "") << option;
  }
  EXPECT_NE(error_of({"-o", "chunksize=1M,blocksize=2M", "src", "mnt"}).find("blocksize"), std::string::npos);
  EXPECT_NE(error_of({"-o", "blocksize=4,typesize=8", "src", "mnt"}).find("typesize"), std::string::npos);
}

TEST(MountOptions, WhatFstabAddsIsIgnored) {
  const MountOptions options = with(
      "defaults,noauto,auto,user,user=jo,nouser,users,owner,group,nofail,_netdev,x-systemd.automount,x-gvfs-show,"
      "X-mount.mkdir,comment=anything,relatime,uhelper=fuse,rw");
  EXPECT_TRUE(options.daemon.fuse_options.empty());
}

TEST(MountOptions, WhatFuseUnderstandsIsPassedOn) {
  EXPECT_EQ(
      with("allow_other,nosuid,nodev,fsname=x,ro,subtype=y,max_read=65536,default_permissions").daemon.fuse_options,
      (Arguments{"allow_other", "nosuid", "nodev", "fsname=x", "subtype=y", "max_read=65536", "default_permissions"}));
  EXPECT_EQ(with("fsname=a\\,b,ro").daemon.fuse_options, (Arguments{"fsname=a\\,b"}));
}

TEST(MountOptions, WhatAMountCannotHaveIsRefusedWithTheReason) {
  EXPECT_NE(error_of({"-o", "blkdev", "src", "mnt"}).find("no block device"), std::string::npos);
  EXPECT_NE(error_of({"-o", "nosymfollow", "src", "mnt"}).find("'nosymfollow'"), std::string::npos);
  EXPECT_TRUE(with("nodiratime").daemon.fuse_options.empty());
}

TEST(MountOptions, RemountTakesWhatMountRepeatsOfTheKernelsTable) {
  // The options that mount(8) passes on for `mount -o remount,ro MOUNTPOINT`.
  const std::string table = "rw,nosuid,nodev,relatime,user_id=0,group_id=0,default_permissions,max_read=524288";
  const MountOptions options = with(table + ",remount,ro");
  EXPECT_TRUE(options.daemon.remount && options.read_only);
  EXPECT_TRUE(parse({"src", "mnt", "-oremount," + table}).daemon.remount);
  EXPECT_NE(error_of({"-o", table, "src", "mnt"}).find("'user_id=0'"), std::string::npos);
  EXPECT_FALSE(with("ro").daemon.remount);
}

TEST(MountOptions, AnythingElseIsNamed) {
  EXPECT_NE(error_of({"-o", "ro,compress=zstd", "src", "mnt"}).find("'compress=zstd'"), std::string::npos);
  EXPECT_NE(error_of({"-o", "fsname=", "src", "mnt"}).find("'fsname='"), std::string::npos);
  EXPECT_NE(error_of({"-x", "src", "mnt"}).find("'-x'"), std::string::npos);
  EXPECT_NE(error_of({"--foreground", "src", "mnt"}).find("'--foreground'"), std::string::npos);
  EXPECT_NE(error_of({"src", "mnt", "-o"}).find("-o"), std::string::npos);
  EXPECT_NE(error_of({"src", "mnt", "third"}).find("'third'"), std::string::npos);
  EXPECT_NE(error_of({"src"}).find("MOUNTPOINT"), std::string::npos);
  EXPECT_NE(error_of({}).find("SOURCE"), std::string::npos);
  EXPECT_NE(error_of({"", "mnt"}).find("SOURCE"), std::string::npos);
}

}  // namespace
}  // namespace cframefs::test
