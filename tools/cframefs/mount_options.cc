#include "tools/cframefs/mount_options.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "codec/format/chunk_header.h"
#include "codec/format/filter_registry.h"
#include "codec/stream/codec_table.h"
#include "tools/cframefs/life_options.h"
#include "tools/cframefs/remote_options.h"
#include "tools/lib/sizes.h"

namespace cframefs::tools {

using codec::invalid;
using codec::Result;
using fs::MountOptions;

namespace {

using Status = Result<void>;

template <class T>
struct Word {
  std::string_view text;
  T value;
};

template <class T, std::size_t N>
Status choose(const std::array<Word<T>, N>& words, std::string_view value, T& into) {
  std::string known;
  for (const auto& word : words) {
    if (word.text == value) {
      into = word.value;
      return {};
    }
    known += (known.empty() ? "" : ", ") + std::string(word.text);
  }
  return invalid("must be one of " + known);
}

Status choose_switch(std::string_view value, bool& into) {
  static constexpr std::array<Word<bool>, 2> kWords = {{{"off", false}, {"on", true}}};
  return choose(kWords, value, into);
}

/// Parses a size between two bounds.
Result<std::uint64_t> bounded_size(std::string_view value, std::uint64_t least, std::uint64_t most) {
  auto size = parse_size(value);
  if (size && (*size < least || *size > most)) {
    return invalid("must be between " + human_size(least) + " and " + human_size(most));
  }
  return size;
}

template <class T, class U>
Status store(Result<T> value, U& into) {
  if (!value) return codec::Failure(value.error());
  into = static_cast<U>(*value);
  return {};
}

// ---- one function for each option -------------------------------------------------------------------------------

Status set_ro(MountOptions& options, std::string_view) {
  options.read_only = true;
  return {};
}

Status set_rw(MountOptions& options, std::string_view) {
  options.read_only = false;
  return {};
}

Status set_names(MountOptions& options, std::string_view value) {
  static constexpr std::array<Word<fs::Names>, 2> kWords = {{{"strip", fs::Names::strip}, {"keep", fs::Names::keep}}};
  return choose(kWords, value, options.names);
}

Status set_b2nd(MountOptions& options, std::string_view value) {
  static constexpr std::array<Word<fs::ArrayView>, 3> kWords = {
      {{"npy", fs::ArrayView::npy}, {"flat", fs::ArrayView::flat}, {"chunks", fs::ArrayView::chunks}}};
  return choose(kWords, value, options.b2nd);
}

Status set_detect(MountOptions& options, std::string_view value) {
  static constexpr std::array<Word<fs::Detect>, 2> kWords = {
      {{"suffix", fs::Detect::suffix}, {"content", fs::Detect::content}}};
  return choose(kWords, value, options.detect);
}

Status set_offset(MountOptions& options, std::string_view value) {
  return store(bounded_size(value, 0, INT64_MAX), options.offset);
}

Status set_beta_bitshuffle(MountOptions& options, std::string_view value) {
  static constexpr std::array<Word<bool>, 2> kWords = {{{"new", false}, {"old", true}}};
  return choose(kWords, value, options.old_bitshuffle);
}

Status set_cache_size(MountOptions& options, std::string_view value) {
  return store(bounded_size(value, std::uint64_t{1} << 20, std::uint64_t{1} << 50), options.cache_size);
}

Status set_readahead(MountOptions& options, std::string_view value) {
  if (value == "off") value = "0";
  return store(bounded_size(value, 0, std::uint64_t{1} << 40), options.readahead);
}

Status set_workers(MountOptions& options, std::string_view value) {
  constexpr std::uint64_t kMax = 1024;
  const auto count = parse_count(value);
  if (!count || *count == 0 || *count > kMax) return invalid("must be a number between 1 and 1024");
  options.workers = static_cast<unsigned>(*count);
  return {};
}

Status set_stats(MountOptions& options, std::string_view value) {
  return choose_switch(value, options.statistics);
}

Status set_codec(MountOptions& options, std::string_view value) {
  if (const auto known = codec::find_codec(value); !known) return codec::Failure(known.error());
  options.new_frames.codec = value;
  return {};
}

Status set_clevel(MountOptions& options, std::string_view value) {
  const auto level = parse_count(value);
  if (!level || *level > 9) return invalid("must be a number between 0 and 9");
  options.new_frames.clevel = static_cast<int>(*level);
  return {};
}

Status set_filter(MountOptions& options, std::string_view value) {
  if (const auto known = codec::filters_named(value); value != "auto" && !known) return codec::Failure(known.error());
  options.new_frames.filter = value;
  return {};
}

Status set_typesize(MountOptions& options, std::string_view value) {
  return store(parse_size_or_auto(value, codec::kMaxBlockBytes), options.new_frames.typesize);
}

Status set_chunksize(MountOptions& options, std::string_view value) {
  return store(parse_size_or_auto(value, codec::kMaxChunkBytes), options.new_frames.chunksize);
}

Status set_blocksize(MountOptions& options, std::string_view value) {
  return store(parse_size_or_auto(value, codec::kMaxBlockBytes), options.new_frames.blocksize);
}

Status set_new_npy(MountOptions& options, std::string_view value) {
  static constexpr std::array<Word<bool>, 2> kWords = {{{"frame", false}, {"b2nd", true}}};
  return choose(kWords, value, options.new_frames.npy_as_array);
}

Status set_checksums(MountOptions& options, std::string_view value) {
  static constexpr std::array<Word<fs::Checksums>, 3> kWords = {
      {{"on", fs::Checksums::on}, {"keep", fs::Checksums::keep}, {"off", fs::Checksums::off}}};
  return choose(kWords, value, options.new_frames.checksums);
}

Status set_dirty_limit(MountOptions& options, std::string_view value) {
  return store(bounded_size(value, std::uint64_t{1} << 20, std::uint64_t{1} << 50), options.dirty_limit);
}

Status set_commit_interval(MountOptions& options, std::string_view value) {
  return store(parse_seconds(value), options.commit_interval);
}

Status set_writeback(MountOptions& options, std::string_view value) {
  return choose_switch(value, options.kernel_cache.writeback);
}

Status set_fill_pages(MountOptions& options, std::string_view value) {
  return choose_switch(value, options.kernel_cache.fill_pages);
}

Status set_passthrough(MountOptions& options, std::string_view value) {
  static constexpr std::array<Word<bool>, 2> kWords = {{{"auto", true}, {"off", false}}};
  return choose(kWords, value, options.kernel_cache.passthrough);
}

Status set_attr_timeout(MountOptions& options, std::string_view value) {
  return store(parse_seconds(value), options.kernel_cache.attr_timeout);
}

Status set_entry_timeout(MountOptions& options, std::string_view value) {
  return store(parse_seconds(value), options.kernel_cache.entry_timeout);
}

// ---- the tables -------------------------------------------------------------------------------------------------

const std::string kCodecHelp = codec::writable_codec_names(" or ") + ", for new files (zstd)";

const std::array kOptions = {
    OptionSpec{"ro", "", "read-only", set_ro},
    OptionSpec{"rw", "", "as mount(8); the default", set_rw},
    OptionSpec{"names", "strip|keep", "show x.b2frame as x, or under its own name (strip)", set_names},
    OptionSpec{"b2nd", "npy|flat|chunks", "form in which an n-d array shows (npy)", set_b2nd},
    OptionSpec{"detect", "suffix|content", "how containers are recognised (suffix)", set_detect},
    OptionSpec{"offset", "BYTES", "offset of the frame in a single-file SOURCE (0)", set_offset},
    OptionSpec{"beta_bitshuffle", "new|old", "bit order in frames of 2.0.0-beta.3 to 5: beta.5, or before (new)",
               set_beta_bitshuffle},
    OptionSpec{"cache_size", "SIZE", "limit on decoded bytes in memory (1/8 of memory, 8M to 1G)", set_cache_size},
    OptionSpec{"readahead", "SIZE", "bytes decoded ahead of a sequential reader, 0 = off (1M x (CPUs + 1))",
               set_readahead},
    OptionSpec{"workers", "N", "decoding threads (one per CPU)", set_workers},
    OptionSpec{"codec", "NAME", kCodecHelp, set_codec},
    OptionSpec{"clevel", "0..9", "compression level of new files (5)", set_clevel},
    OptionSpec{"filter", "NAME[+NAME...]", "filters of new files, or auto: by the data (shuffle)", set_filter},
    OptionSpec{"typesize", "BYTES|auto", "item size of new files (auto)", set_typesize},
    OptionSpec{"chunksize", "SIZE|auto", "chunk size of new files (auto)", set_chunksize},
    OptionSpec{"blocksize", "SIZE|auto", "block size of new files (auto)", set_blocksize},
    OptionSpec{"new_npy", "frame|b2nd", "what a new .npy file is stored as: its bytes, or an n-d array (frame)",
               set_new_npy},
    OptionSpec{"checksums", "on|keep|off", "digests of blocks: for new frames, too, only kept, or dropped (on)",
               set_checksums},
    OptionSpec{"dirty_limit", "SIZE", "limit on uncommitted bytes (8M to 512M)", set_dirty_limit},
    OptionSpec{"commit_interval", "SECONDS", "limit on the age of uncommitted data (5)", set_commit_interval},
    OptionSpec{"writeback", "off|on", "the kernel's write-back cache (off)", set_writeback},
    OptionSpec{"fill_pages", "on|off", "the kernel reads blocks whole that are read in parts (on)", set_fill_pages},
    OptionSpec{"passthrough", "auto|off", "the kernel reads files of no known kind itself (auto)", set_passthrough},
    OptionSpec{"stats", "off|on", "serve the unlisted directory .cframefs with statistics (off)", set_stats},
    OptionSpec{"uid", "USER", "number of the user to whom all files appear to belong", set_uid},
    OptionSpec{"gid", "GROUP", "number of the group to which all files appear to belong", set_gid},
    OptionSpec{"umask", "OCTAL", "all files appear with all rights but these", set_umask},
    OptionSpec{"mkdir", "", "make MOUNTPOINT if it is missing", set_mkdir},
    OptionSpec{"nonempty", "", "do not warn of what the mount covers", set_nonempty},
    OptionSpec{"remount", "", "with ro or rw: change a mount that exists", set_remount},
    OptionSpec{"idle_timeout", "SECONDS", "unmount after this time without use, 0 = never (0)", set_idle_timeout},
    OptionSpec{"cache_timeout", "SECONDS", "free the cache after this time without a request, 0 = never (60)",
               set_cache_timeout},
    OptionSpec{"log", "FILE|syslog", "where messages go (-f: standard error, else syslog)", set_log},
    OptionSpec{"sandbox", "auto|off|strict", "give up the rights that serving does not need (auto)", set_sandbox},
    OptionSpec{"log_level", "error|warning|info|debug", "the least important messages to log (info)", set_log_level},
    OptionSpec{"attr_timeout", "SECONDS", "how long the kernel may keep attributes (directories 1, files 60)",
               set_attr_timeout},
    OptionSpec{"entry_timeout", "SECONDS", "how long the kernel may keep names (directories 1, files 60)",
               set_entry_timeout},
};

/// Returns all options, in the order of the usage text.
const std::vector<OptionSpec>& all_options() {
  static const std::vector<OptionSpec> kAll = [] {
    std::vector<OptionSpec> all(kOptions.begin(), kOptions.end());
    const auto remote = remote_options();
    all.insert(all.end(), remote.begin(), remote.end());
    return all;
  }();
  return kAll;
}

// Options for mount(8), systemd and other readers of fstab, and options on access times, which follow the mount options
// of the source.
constexpr std::array<std::string_view, 25> kIgnored = {
    "defaults",    "auto",     "noauto",     "user",         "nouser",   "users",      "owner",
    "group",       "nofail",   "_netdev",    "atime",        "relatime", "norelatime", "diratime",
    "strictatime", "lazytime", "nolazytime", "nodiratime",   "silent",   "loud",       "mand",
    "nomand",      "iversion", "noiversion", "nostrictatime"};
constexpr std::array<std::string_view, 5> kIgnoredPrefixes = {"x-", "X-", "comment=", "uhelper=", "helper="};

// Options that libfuse 3.14 passes to the kernel or to fusermount3. Names that end in "=" take a value.
constexpr std::array<std::string_view, 21> kPassedOn = {
    "allow_other", "allow_root", "auto_unmount", "default_permissions",
    "fsname=",     "subtype=",   "max_read=",    "suid",
    "nosuid",      "dev",        "nodev",        "exec",
    "noexec",      "async",      "sync",         "dirsync",
    "noatime",     "context=",   "fscontext=",   "defcontext=",
    "rootcontext="};

// Options of mount(8) or libfuse that cframefs refuses, and why.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kRefused = {{
    {"blkdev", "a mount shows files, no block device"},
    {"nosymfollow", "not supported: libfuse cannot pass it to the kernel"},
}};

bool is_ignored(std::string_view option) {
  return std::find(kIgnored.begin(), kIgnored.end(), option) != kIgnored.end() || option.starts_with("user=") ||
         std::any_of(kIgnoredPrefixes.begin(), kIgnoredPrefixes.end(),
                     [&](std::string_view prefix) { return option.starts_with(prefix); });
}

bool is_passed_on(std::string_view option) {
  return std::any_of(kPassedOn.begin(), kPassedOn.end(), [&](std::string_view known) {
    return known.ends_with('=') ? option.starts_with(known) && option.size() > known.size() : option == known;
  });
}

/// Returns true for the options of a mount that only the kernel's table names.
bool is_in_table(std::string_view option) {
  static constexpr std::array<std::string_view, 4> kPrefixes = {"user_id=", "group_id=", "rootmode=", "blksize="};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return option.starts_with(prefix); });
}

/// Escapes commas and backslashes for libfuse's option list, as split_options() reads them.
std::string escaped(std::string_view option) {
  std::string text;
  for (const char c : option) {
    if (c == ',' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

Status apply_option(MountOptions& options, const std::string& option) {
  if (const auto done = apply_mount_mkdir(options, option); !done) {
    return invalid("option '" + option + "': " + done.error().reason);
  }
  if (option.empty() || is_ignored(option)) return {};
  if (option == "debug") {
    options.daemon.debug = options.daemon.foreground = true;
    return {};
  }
  const std::size_t equals = option.find('=');
  const std::string name = option.substr(0, equals);
  const auto& known = all_options();
  const auto spec = std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.name == name; });
  if (spec == known.end()) {
    for (const auto& [refused, why] : kRefused) {
      if (option == refused) return invalid("option '" + option + "': " + std::string(why));
    }
    // mount(8) repeats what the kernel's table says of the mount.
    if (options.daemon.remount && is_in_table(option)) return {};
    if (!is_passed_on(option)) return invalid("unknown option '" + option + "' (-h lists the options)");
    options.daemon.fuse_options.push_back(escaped(option));
    // The kernel keeps the access times of the mount unchanged, and the daemon those of the source.
    if (option == "noatime") options.no_access_times = true;
    return {};
  }
  if (spec->values.empty() != (equals == std::string::npos)) {
    return invalid("option '" + name + "' takes " +
                   (spec->values.empty() ? "no value" : "a value: " + name + "=" + std::string(spec->values)));
  }
  const std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
  if (auto applied = spec->apply(options, value); !applied) {
    return invalid("option '" + option + "': " + applied.error().reason);
  }
  return {};
}

/// Splits at commas; a backslash escapes the next character, as in libfuse.
std::vector<std::string> split_options(std::string_view text) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      parts.emplace_back();
    } else {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      parts.back() += text[i];
    }
  }
  return parts;
}

Status apply_options(MountOptions& options, std::string_view text) {
  for (const auto& option : split_options(text)) {
    if (auto applied = apply_option(options, option); !applied) return applied;
  }
  return {};
}

/// Returns `invalid` if options conflict.
Status validate_combination(const MountOptions& options) {
  if (options.new_frames.blocksize != 0 && options.new_frames.chunksize != 0 &&
      options.new_frames.blocksize > options.new_frames.chunksize) {
    return invalid("option 'blocksize' is larger than 'chunksize'");
  }
  if (options.new_frames.typesize != 0 && options.new_frames.blocksize != 0 &&
      options.new_frames.typesize > options.new_frames.blocksize) {
    return invalid("option 'typesize' is larger than 'blocksize'");
  }
  if (options.new_frames.npy_as_array && (options.names != fs::Names::strip || options.b2nd != fs::ArrayView::npy)) {
    return invalid("option 'new_npy=b2nd' needs names=strip and b2nd=npy, under which an array shows as a .npy file");
  }
  return {};
}

/// Returns true if a list of options contains `remount`, which decides what other options may be.
bool has_remount(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (!arguments[i].starts_with("-o")) continue;
    const bool is_apart = arguments[i] == "-o" && i + 1 < arguments.size();
    const auto options = split_options(is_apart ? arguments[++i] : arguments[i].substr(2));
    if (std::find(options.begin(), options.end(), "remount") != options.end()) return true;
  }
  return false;
}

/// Takes arguments from the front of a list.
class Arguments {
 public:
  explicit Arguments(const std::vector<std::string>& all) : rest_(all) {}
  bool empty() const { return rest_.empty(); }
  const std::string& next() {
    const std::string& first = rest_.front();
    rest_ = rest_.subspan(1);
    return first;
  }

 private:
  std::span<const std::string> rest_;
};

/// Applies a switch. REQUIRES: `argument` begins with '-' and has more characters.
Status apply_switch(MountCommand& command, const std::string& argument, Arguments& rest) {
  MountOptions& options = command.options;
  if (argument == "-o") {
    if (rest.empty()) return invalid("-o needs an argument");
    return apply_options(options, rest.next());
  }
  if (argument.starts_with("-o")) return apply_options(options, std::string_view(argument).substr(2));
  if (argument == "-f") {
    options.daemon.foreground = true;
  } else if (argument == "-d" || argument == "--debug") {
    options.daemon.debug = options.daemon.foreground = true;
  } else if (argument == "-s") {
    options.daemon.single_thread = true;
  } else if (argument == "-h" || argument == "--help") {
    command.action = MountAction::show_help;
  } else if (argument == "-V" || argument == "--version") {
    command.action = MountAction::show_version;
  } else {
    return invalid("unknown option '" + argument + "' (-h lists the options)");
  }
  return {};
}

}  // namespace

Result<MountCommand> parse_mount_command(const std::vector<std::string>& arguments) {
  MountCommand command;
  command.options.daemon.remount = has_remount(arguments);
  std::vector<std::string> names;
  bool only_names = false;
  for (Arguments rest(arguments); !rest.empty();) {
    const std::string& argument = rest.next();
    if (only_names || argument.size() < 2 || argument.front() != '-') {
      names.push_back(argument);
    } else if (argument == "--") {
      only_names = true;
    } else if (auto applied = apply_switch(command, argument, rest); !applied) {
      return codec::Failure(applied.error());
    }
    if (command.action != MountAction::mount) return command;
  }
  if (names.size() > 2) return invalid("too many arguments: '" + names[2] + "' after SOURCE and MOUNTPOINT");
  if (names.empty() || names[0].empty()) return invalid("SOURCE and MOUNTPOINT are missing (-h shows the usage)");
  if (names.size() < 2 || names[1].empty()) return invalid("MOUNTPOINT is missing (-h shows the usage)");
  if (auto fitting = validate_combination(command.options); !fitting) return codec::Failure(fitting.error());
  command.options.source = names[0];
  command.options.mountpoint = names[1];
  return command;
}

std::string mount_usage() {
  std::string text =
      "Usage: cframefs [options] SOURCE MOUNTPOINT\n"
      "Shows a directory of Blosc2 frames, or one frame, as plain files. SOURCE may be an address: http://, https://,\n"
      "s3://BUCKET/KEY; what ends in / is a directory.\n\n"
      "  -o OPTION[,OPTION...]  mount options, see below\n"
      "  -f                     stay in the foreground\n"
      "  -d                     print debug output, stay in the foreground\n"
      "  -s                     serve with one thread\n"
      "  -h, --help             print this text\n"
      "  -V, --version          print the versions of the program and its libraries\n\n"
      "Mount options (default in parentheses; SIZE is bytes, or 64K, 1M, 2G):\n";
  for (const auto& spec : all_options()) {
    std::string head = "  " + std::string(spec.name);
    if (!spec.values.empty()) head += "=" + std::string(spec.values);
    if (head.size() < 31) head.resize(31, ' ');
    text += head + " " + std::string(spec.help) + "\n";
  }
  text += "\nOptions of FUSE and the kernel:\n ";
  std::size_t column = 1;
  for (const auto name : kPassedOn) {
    if (column + name.size() > 90) {
      text += "\n ";
      column = 1;
    }
    text += " " + std::string(name) + (name.ends_with('=') ? "..." : "");
    column += name.size() + 4;
  }
  return text + "\n";
}

std::vector<std::string> mount_option_names() {
  std::vector<std::string> names;
  names.reserve(all_options().size());
  for (const auto& spec : all_options())
    names.emplace_back(spec.name);
  return names;
}

}  // namespace cframefs::tools
