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

const std::vector<std::string> kSubcommands = {"ls",       "info",    "cat",    "diff",    "bench",  "verify",
                                               "pack",     "map",     "unpack", "compact", "repair", "get-meta",
                                               "set-meta", "convert", "top",    "seal",    "index"};

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

/// All matches of the first two groups, "first,second".
Words pairs(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  Words found;
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match) {
    found.insert((*match)[1].str() + "," + (*match)[2].str());
  }
  return found;
}

/// What the option of a pattern takes, for options that take one of several words: "--b2nd,npy flat chunks".
Words choices(const std::string& text, const std::string& pattern) {
  Words found;
  for (std::string choice : pairs(text, pattern)) {
    std::replace(choice.begin(), choice.end(), '|', ' ');
    found.insert(choice);
  }
  return found;
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

TEST(Documents, TheVersionOfCframeNamesItsLibraries) {
  const Ran ran = run_cframe({"-V"});
  EXPECT_EQ(ran.status, tools::done);
  EXPECT_EQ(ran.err, "");
  const std::string number = " \\d+\\.\\d+[\\w.]*\n";
  std::string expected = "cframe \\d+\\.\\d+\\.\\d+\n";
  for (const char* name : {"zstd", "lz4", "libdeflate", "snappy", "zfp", "zlib", "OpenSSL", "xxHash"})
    expected += name + number;
  EXPECT_TRUE(std::regex_match(ran.out, std::regex(expected))) << ran.out;
  EXPECT_EQ(run_cframe({"--version"}).out, ran.out);
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

TEST(Documents, TheManualAndCompletionsOfCframeNameTheShortOptions) {
  const std::string manual = document("tools/man/cframe.1.scd");
  const std::string zsh = document("tools/completions/_cframe");
  const std::string fish = document("tools/completions/cframe.fish");
  const Words common = pairs(run_cframe({"--help"}).out, "\n +-(\\w),--([a-z0-9-]+)");
  EXPECT_EQ(common, (Words{"h,help", "V,version"}));
  EXPECT_EQ(pairs(part(manual, "\n# COMMON OPTIONS", "\n# INFO"), "\\*-(\\w)\\*, \\*--([a-z-]+)\\*"), common);
  EXPECT_EQ(pairs(part(zsh, "\n_cframe() {", "\n}"), "\\{-(\\w),--([a-z0-9-]+)\\}"), common);
  EXPECT_EQ(pairs(fish, "cframe(?: -n __fish_use_subcommand)? -s (\\w) -l ([a-z-]+)"), common);
  for (const std::string& subcommand : kSubcommands) {
    Words wanted = pairs(run_cframe({subcommand, "--help"}).out, "\n +-(\\w),--([a-z0-9-]+)");
    EXPECT_EQ(pairs(part(zsh, "_cframe_" + subcommand + "() {", "\n}"), "\\{-(\\w),--([a-z0-9-]+)\\}"), wanted)
        << subcommand;
    wanted.erase("h,help");  // once, for all
    EXPECT_EQ(pairs(part(manual, "\n# " + upper(subcommand) + "\n", "\n# "), "\n\\*-(\\w)\\*, \\*--([a-z0-9-]+)\\*"),
              wanted)
        << subcommand;
    EXPECT_EQ(pairs(fish, "subcommand_from " + subcommand + "' -s (\\w) -l ([a-z0-9-]+)"), wanted) << subcommand;
  }
}

TEST(Documents, TheManualAndCompletionsOfCframeNameTheChoices) {
  const std::string bash = document("tools/completions/cframe.bash");
  const std::string zsh = document("tools/completions/_cframe");
  const std::string fish = document("tools/completions/cframe.fish");
  const std::string manual = document("tools/man/cframe.1.scd");
  Words all;
  for (const std::string& subcommand : kSubcommands) {
    const Words wanted = choices(run_cframe({subcommand, "--help"}).out, "\n +--([a-z0-9-]+) ([a-z|]*\\|[a-z|]+):");
    all.insert(wanted.begin(), wanted.end());
    for (const std::string& choice : wanted) {
      const std::string option = choice.substr(0, choice.find(','));
      const std::string words = choice.substr(option.size() + 1);
      EXPECT_NE(part(zsh, "_cframe_" + subcommand + "() {", "\n}").find(":(" + words + ")'"), std::string::npos)
          << choice;
      EXPECT_NE(fish.find("subcommand_from " + subcommand + "' -x -l " + option + " -a '" + words + "'"),
                std::string::npos)
          << choice;
      const std::string section = part(manual, "\n# " + upper(subcommand) + "\n", "\n# ");
      EXPECT_EQ(choices(std::regex_replace(section, std::regex("_"), ""), "\\*--(" + option + ")\\* ([a-z|]+)"),
                Words{choice});
    }
  }
  EXPECT_EQ(all.size(), 4U);
  for (const std::string& choice : all) {
    const std::string option = choice.substr(0, choice.find(','));
    EXPECT_EQ(pairs(bash, "--(" + option + ")\\)\n +mapfile[^\n]*-W '([^']+)'"), Words{choice});
  }
}

Words mount_options() {
  const auto names = tools::mount_option_names();
  return {names.begin(), names.end()};
}

/// What is passed on to FUSE and the kernel, as the help has it.
Words fuse_options() {
  const std::string head = "\nOptions of FUSE and the kernel:";
  return matches(part(tools::mount_usage(), head, "\n\n").substr(head.size()), "[ \n](\\w+)(?==|[ \n]|$)");
}

Words all_options() {
  Words names = mount_options();
  names.merge(fuse_options());
  return names;
}

TEST(Documents, TheHelpOfCframefsNamesTheMountOptions) {
  EXPECT_EQ(matches(part(tools::mount_usage(), "\nMount options", "\n\n"), "\n  (\\w+)"), mount_options());
}

TEST(Documents, TheManualOfCframefsNamesTheMountOptions) {
  const std::string section = part(document("tools/man/cframefs.1.scd"), "\n# MOUNT OPTIONS", "\n# STATISTICS");
  EXPECT_EQ(matches(section, "\\*(\\w+)\\*(?:=|,|\n)"), mount_options());
  const std::string passed_on = part(section, "options of FUSE and the kernel:", ". Any other");
  EXPECT_GT(fuse_options().size(), 15U);
  EXPECT_EQ(matches(passed_on, "[ \n](\\w+)=?(?=,|$)"), fuse_options());
}

TEST(Documents, TheManualAndHelpOfCframefsNameTheSwitches) {
  const std::string manual = part(document("tools/man/cframefs.1.scd"), "\n# OPTIONS", "\n# MOUNT OPTIONS");
  const std::string usage = part(tools::mount_usage(), "Usage", "\nMount options");
  const Words wanted = {"-o", "-f", "-d", "-s", "-h", "-V"};
  const Words with_long_name = {"h,help", "V,version"};
  EXPECT_EQ(pairs(manual, "\n\\*-(\\w)\\*, \\*--(\\w+)\\*"), with_long_name);
  EXPECT_EQ(pairs(usage, "\n  -(\\w), --(\\w+)"), with_long_name);
  EXPECT_EQ(matches(document("tools/completions/cframefs.bash"), " --(\\w+)(?= |')"), (Words{"help", "version"}));
  EXPECT_EQ(pairs(document("tools/completions/_cframefs"), "\\{-(\\w),--(\\w+)\\}"), with_long_name);
  EXPECT_EQ(pairs(document("tools/completions/cframefs.fish"), " -s (\\w) -l (\\w+)"), with_long_name);
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
  EXPECT_EQ(matches(bash, "[' \n](\\w+)=?(?=[ '\n]|$)"), all_options());
  const std::string zsh = part(document("tools/completions/_cframefs"), "_values", "\n}");
  EXPECT_EQ(matches(zsh, "\n +'(\\w+)\\["), all_options());
  const std::string fish = part(document("tools/completions/cframefs.fish"), "set -l options", "\n\n");
  EXPECT_EQ(matches(fish.substr(std::string("set -l options").size()), "[ \n](\\w+)(?==|[ \n]|$)"), all_options());
}

TEST(Documents, TheManualAndCompletionsOfCframefsNameTheChoices) {
  const Words wanted = choices(tools::mount_usage(), "\n  (\\w+)=([a-z0-9|]*\\|[a-z0-9|]+) ");
  EXPECT_GE(wanted.size(), 6U);
  const std::string manual =
      std::regex_replace(part(document("tools/man/cframefs.1.scd"), "\n# MOUNT OPTIONS", "\n# STATISTICS"),
                         std::regex("_(?=[a-z|\n])|_(?=$)"), "");
  const std::string bash = document("tools/completions/cframefs.bash");
  const std::string zsh = document("tools/completions/_cframefs");
  const std::string fish = document("tools/completions/cframefs.fish");
  for (const std::string& choice : wanted) {
    const std::string option = choice.substr(0, choice.find(','));
    std::istringstream words(choice.substr(option.size() + 1));
    std::string values;
    std::string with_name;
    for (std::string word; words >> word;) {
      values += (values.empty() ? "" : " ") + word;
      with_name += (with_name.empty() ? "" : " ") + option + "=" + word;
    }
    EXPECT_NE(bash.find("      " + option + "=*) choices='" + with_name + "'"), std::string::npos) << choice;
    EXPECT_TRUE(std::regex_search(zsh, std::regex("'" + option + "\\[[^\n]*:\\(" + values + "\\)'"))) << choice;
    EXPECT_EQ(matches(fish, "[ \n]" + option + "=(\\w+)"), matches(values, "(\\w+)")) << choice;
    std::string alternatives = values;
    std::replace(alternatives.begin(), alternatives.end(), ' ', '|');
    std::string name = option;
    name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
    EXPECT_NE(manual.find("*" + name + "*=" + alternatives + "\n"), std::string::npos) << choice;
  }
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
  for (const char* subcommand : {"pack", "convert", "bench"}) {
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

TEST(Documents, TheCompletionsNameTheFilters) {
  const Words wanted = matches(part(run_cframe({"pack", "--help"}).out, "--filter", "--typesize"), " (\\w+),");
  EXPECT_GE(wanted.size(), 5U);
  const auto named = [&wanted](const std::string& name, const std::string& pattern) {
    // Only some subcommands take "auto".
    Words names = wanted;
    const Words lists = matches(document(name), pattern);
    EXPECT_FALSE(lists.empty()) << name;
    for (const std::string& list : lists) {
      names = matches(list, "(?:^| )(?:filter=)?(\\w+)(?= |$)");
      names.erase("auto");
      if (names != wanted) break;
    }
    return names;
  };
  EXPECT_EQ(named("tools/completions/cframe.bash", "--filter\\)\n +mapfile[^\n]*-W '([^']+)'"), wanted);
  EXPECT_EQ(named("tools/completions/_cframe", "--filter\\[[^\n]*:names:\\(([^)]+)\\)"), wanted);
  EXPECT_EQ(named("tools/completions/cframe.fish", "-l filter -a '([^']+)'"), wanted);
  EXPECT_EQ(named("tools/completions/cframefs.bash", "filter=\\*\\) choices='([^']+)'"), wanted);
  EXPECT_EQ(named("tools/completions/_cframefs", "'filter\\[of new files\\]:filter:\\(([^)]+)\\)"), wanted);
  Words of_fish = matches(document("tools/completions/cframefs.fish"), "[ \n]filter=(\\w+)");
  of_fish.erase("auto");
  EXPECT_EQ(of_fish, wanted);
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
