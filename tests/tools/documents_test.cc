// Help, manual pages, README and completions name the same options, subcommands and codecs.
#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "codec/stream/codec_table.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"
#include "tools/cframefs/mount_options.h"

namespace cframefs::test {
namespace {

using Words = std::set<std::string>;

const std::vector<std::string> kSubcommands = {"info",    "cat",    "verify",   "pack",     "unpack",
                                               "compact", "repair", "get-meta", "set-meta", "convert"};

std::string document(const std::string& name) {
  const auto bytes = file_bytes(std::string(CFRAMEFS_SOURCE_DIR) + "/" + name);
  EXPECT_FALSE(bytes.empty()) << name;
  return {bytes.begin(), bytes.end()};
}

/// All matches of the first group.
Words matches(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  Words found;
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match) {
    found.insert((*match)[1].str());
  }
  return found;
}

/// From the first place where `begin` stands to the next where `end` does.
std::string part(const std::string& text, const std::string& begin, const std::string& end) {
  const auto from = text.find(begin);
  EXPECT_NE(from, std::string::npos) << begin;
  if (from == std::string::npos) return "";
  return text.substr(from, text.find(end, from + begin.size()) - from);
}

Words help_options(const std::string& subcommand) {
  const Ran ran = run_cframe({subcommand, "--help"});
  EXPECT_EQ(ran.status, tools::done);
  return matches(ran.out, "\n +(?:-\\w,)?(--[a-z0-9-]+)");
}

std::string upper(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::toupper(c); });
  return word;
}

TEST(Documents, CframeHelpNamesTheSubcommands) {
  const Ran ran = run_cframe({"--help"});
  EXPECT_EQ(ran.status, tools::done);
  EXPECT_EQ(matches(part(ran.out, "Subcommands:", "Exit status"), "\n  ([\\w-]+) "),
            Words(kSubcommands.begin(), kSubcommands.end()));
}

TEST(Documents, TheManualOfCframeNamesTheOptions) {
  const std::string manual = document("tools/man/cframe.1.scd");
  for (const std::string& subcommand : kSubcommands) {
    Words wanted = help_options(subcommand);
    EXPECT_GT(wanted.size(), 2U);
    wanted.erase("--help");  // described once, for all
    EXPECT_EQ(
        matches(part(manual, "\n# " + upper(subcommand) + "\n", "\n# "), "\n(?:\\*-\\w\\*, )?\\*(--[a-z0-9-]+)\\*"),
        wanted)
        << subcommand;
  }
  EXPECT_EQ(matches(part(manual, "\n# COMMON OPTIONS", "\n# INFO"), "\\*(--[a-z-]+)\\*"),
            (Words{"--help", "--version"}));
  EXPECT_EQ(matches(part(manual, "\n# EXIT STATUS", "\n# EXAMPLES"), "\n\\*(\\d)\\*"), (Words{"0", "1", "2", "3"}));
}

TEST(Documents, TheCompletionsOfCframeNameTheOptions) {
  const std::string bash = document("tools/completions/cframe.bash");
  const std::string zsh = document("tools/completions/_cframe");
  const std::string fish = document("tools/completions/cframe.fish");
  for (const std::string& subcommand : kSubcommands) {
    const Words wanted = help_options(subcommand);
    EXPECT_EQ(matches(part(bash, "    " + subcommand + ") options='", ";;"), "(--[a-z0-9-]+)"), wanted) << subcommand;
    EXPECT_EQ(matches(part(zsh, "_cframe_" + subcommand + "() {", "\n}"), "(--[a-z0-9-]+)(?:=-)?[\\[}]"), wanted)
        << subcommand;
    Words in_fish = {"--help"};
    for (const auto& name : matches(fish, "subcommand_from " + subcommand + "'[^\n]* -l ([a-z0-9-]+)")) {
      in_fish.insert("--" + name);
    }
    EXPECT_EQ(in_fish, wanted) << subcommand;
    EXPECT_TRUE(matches(bash, "options='([^']*)--help --version'").begin()->find(subcommand) != std::string::npos);
    EXPECT_NE(zsh.find(subcommand + "\\:"), std::string::npos);
    EXPECT_NE(fish.find("-a " + subcommand + " "), std::string::npos);
  }
}

Words mount_options() {
  const auto names = tools::mount_option_names();
  return {names.begin(), names.end()};
}

/// What is passed on to FUSE has no place in the comparison.
Words without_fuse(Words names) {
  for (const char* name : {"allow_other", "allow_root", "default_permissions"})
    names.erase(name);
  return names;
}

TEST(Documents, TheHelpOfCframefsNamesTheMountOptions) {
  EXPECT_EQ(matches(part(tools::mount_usage(), "\nMount options", "\n\n"), "\n  (\\w+)"), mount_options());
}

TEST(Documents, TheManualOfCframefsNamesTheMountOptions) {
  const std::string section = part(document("tools/man/cframefs.1.scd"), "\n# MOUNT OPTIONS", "\n# STATISTICS");
  EXPECT_EQ(matches(section, "\\*(\\w+)\\*(?:=|,|\n)"), mount_options());
}

TEST(Documents, TheManualAndHelpOfCframefsNameTheSwitches) {
  const std::string manual = part(document("tools/man/cframefs.1.scd"), "\n# OPTIONS", "\n# MOUNT OPTIONS");
  const std::string usage = part(tools::mount_usage(), "Usage", "\nMount options");
  const Words wanted = {"-o", "-f", "-d", "-s", "-h", "-V"};
  EXPECT_EQ(matches(manual, "\n\\*(-\\w)\\*"), wanted);
  EXPECT_EQ(matches(usage, "\n  (-\\w)"), wanted);
  EXPECT_EQ(matches(document("tools/completions/cframefs.bash"), "[' ](-\\w)(?= -|')"), wanted);
  EXPECT_EQ(matches(document("tools/completions/_cframefs"), "(-\\w)(?:\\[|,--)"), wanted);
  Words fish;
  for (const auto& name : matches(document("tools/completions/cframefs.fish"), " -s (\\w) "))
    fish.insert("-" + name);
  EXPECT_EQ(fish, wanted);
}

TEST(Documents, TheCompletionsOfCframefsNameTheMountOptions) {
  const std::string bash = part(document("tools/completions/cframefs.bash"), "choices='ro", "'\n");
  EXPECT_EQ(without_fuse(matches(bash, "[' \n](\\w+)=?(?=[ '\n]|$)")), mount_options());
  const std::string zsh = part(document("tools/completions/_cframefs"), "_values", "\n}");
  EXPECT_EQ(without_fuse(matches(zsh, "\n +'(\\w+)\\[")), mount_options());
  const std::string fish = part(document("tools/completions/cframefs.fish"), "set -l options", "\n\n");
  EXPECT_EQ(without_fuse(matches(fish.substr(std::string("set -l options").size()), "[ \n](\\w+)(?==|[ \n]|$)")),
            mount_options());
}

// ---- codecs, as the codec table has them ---------------------------------------------------------------------------

Words writable_codecs() {
  Words names;
  for (const codec::CodecInfo& codec : codec::codec_table()) {
    if (codec.encode != nullptr) names.insert(std::string(codec.name));
  }
  return names;
}

TEST(Documents, TheManualsAndHelpNameTheCodecsThatCanBeWritten) {
  const std::string names = codec::writable_codec_names(" or ");
  for (const char* manual : {"tools/man/cframe.1.scd", "tools/man/cframefs.1.scd"})
    EXPECT_NE(document(manual).find("\n\t" + names + " (zstd).\n"), std::string::npos) << manual;
  EXPECT_NE(tools::mount_usage().find(" " + names + ", for new files (zstd)\n"), std::string::npos);
  for (const char* subcommand : {"pack", "convert"}) {
    const std::string help = part(run_cframe({subcommand, "--help"}).out, "--codec", "--clevel");
    EXPECT_EQ(matches(help, "(\\w+)(?=,| or| \\()"), writable_codecs()) << subcommand;
  }
}

TEST(Documents, TheCompletionsNameTheCodecsThatCanBeWritten) {
  const auto lists_of = [](const std::string& name, const std::string& pattern) {
    std::vector<Words> lists;
    for (const auto& list : matches(document(name), pattern))
      lists.push_back(matches(list, "(?:codec=)?(\\w+)(?= |$)"));
    return lists;
  };
  const std::vector<Words> wanted{writable_codecs()};
  EXPECT_EQ(lists_of("tools/completions/cframe.bash", "--codec\\)\n +mapfile[^\n]*-W '([^']+)'"), wanted);
  EXPECT_EQ(lists_of("tools/completions/_cframe", "--codec\\[compressor\\]:name:\\(([^)]+)\\)"), wanted);
  EXPECT_EQ(lists_of("tools/completions/cframe.fish", "-l codec -a '([^']+)'"), wanted);
  EXPECT_EQ(lists_of("tools/completions/cframefs.bash", "codec=\\*\\) choices='([^']+)'"), wanted);
  EXPECT_EQ(lists_of("tools/completions/_cframefs", "'codec\\[of new files\\]:codec:\\(([^)]+)\\)"), wanted);
  EXPECT_EQ(matches(document("tools/completions/cframefs.fish"), "[ \n]codec=(\\w+)"), wanted.front());
}

TEST(Documents, TheReadmeNamesTheCodecs) {
  const std::string row = part(document("README.md"), "\n| codecs |", "\n| filters");
  Words decoded;
  for (const codec::CodecInfo& codec : codec::codec_table()) {
    // zfp is three codecs.
    if (codec.decode != nullptr) decoded.insert(std::string(codec.name.substr(0, codec.name.find('_'))));
  }
  EXPECT_EQ(matches(part(row, "decoded:", ";"), " (\\w+)"), decoded);
  EXPECT_EQ(matches(part(row, "files:", "|"), " (\\w+)"), writable_codecs());
}

TEST(Documents, TheFormatOfCodecsListsEveryRow) {
  const std::string ids = part(document("codec/doc/codecs.md"), "\n## 1.", "\n## 2.");
  for (const codec::CodecInfo& codec : codec::codec_table()) {
    const std::string id = std::to_string(codec.id);
    const std::string name(codec.name);
    const std::string format = std::to_string(static_cast<int>(codec.format));
    const std::string pattern = codec.format == codec::CodecFormat::registered
                                    ? "\n\\| (" + id + ") \\| " + name + "[ :]"
                                    : "\n\\| (" + name + ")(?:, [^|]*)? \\| " + id + " \\| " + format + " \\|";
    EXPECT_EQ(matches(ids, pattern).size(), 1U) << name;
  }
}

TEST(Documents, TheReadmeNamesWhatThereIs) {
  const std::string readme = document("README.md");
  for (const auto& name : mount_options()) {
    EXPECT_NE(readme.find("`" + name), std::string::npos) << name;
  }
  for (const auto& name : kSubcommands)
    EXPECT_NE(readme.find("cframe " + name), std::string::npos) << name;
}

}  // namespace
}  // namespace cframefs::test
