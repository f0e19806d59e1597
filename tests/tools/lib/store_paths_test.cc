// cframe with paths that lead into stores: what a mount shows there is what its subcommands read.
#include "tools/lib/store_paths.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/array_builder.h"
#include "tests/support/digest.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zip_builder.h"
#include "tests/tools/cframe/run_cframe.h"

namespace cframefs::test {
namespace {

const ArraySpec kArray{{6, 5}, {4, 3}, {2, 3}, 4, "<i4"};

Bytes items() {
  return varied_items(kArray.nbytes());
}
Bytes array() {
  return array_frame(kArray, items()).build();
}
Bytes flat(std::size_t size) {
  return plain_frame(varied_items(size), 700).build();
}

class StorePaths : public testing::Test {
 protected:
  StorePaths() {
    const Bytes embed = embed_frame({{"/tiny", array()}, {"/group/in", flat(2500)}}, "b2tree");
    for (const std::uint16_t method : {std::uint16_t{0}, std::uint16_t{8}}) {
      dir_.write(
          method == 0 ? "stored.b2z" : "deflated.b2z",
          zip_file({{"raw.b2f", flat(5000), method}, {"readme", Bytes(10), method}, {"embed.b2e", embed, method}}));
    }
    dir_.write("e.b2e", embed);
    std::filesystem::create_directories(dir_.path() / "d.b2d" / "group");
    dir_.write("d.b2d/embed.b2e", embed);
    dir_.write("d.b2d/raw.b2f", flat(5000));
  }

  std::string path(const std::string& name) const { return (dir_.path() / name).string(); }
  static Bytes cat(const std::string& file, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"cat", file});
    const Ran ran = run_cframe(options);
    EXPECT_EQ(ran.status, tools::done) << ran.err;
    return {ran.out.begin(), ran.out.end()};
  }
  std::vector<std::string> verified(const std::string& name, int status = tools::done) const {
    const Ran ran = run_cframe({"verify", "--json", path(name)});
    EXPECT_EQ(ran.status, status) << ran.err;
    std::vector<std::string> ok;
    const nlohmann::json report = nlohmann::json::parse(ran.out);
    for (const auto& file : report["files"]) {
      if (file["verdict"] == "ok") ok.push_back(file["path"].get<std::string>().substr(path("").size()));
    }
    return ok;
  }

  TempDir dir_;
};

TEST_F(StorePaths, LeavesOfEveryKindOfStoreAreRead) {
  for (const std::string store : {"stored.b2z", "deflated.b2z", "e.b2e", "d.b2d"}) {
    SCOPED_TRACE(store);
    EXPECT_EQ(cat(path(store + "/tiny.b2nd"), {"--b2nd", "flat"}), items());
    EXPECT_EQ(cat(path(store + "/group/in.b2f")), varied_items(2500));
    if (store != "e.b2e") {
      EXPECT_EQ(cat(path(store + "/raw.b2f")), varied_items(5000));
    }
    const Ran info = run_cframe({"info", "--json", path(store + "/tiny.b2nd")});
    ASSERT_EQ(info.status, tools::done) << info.err;
    EXPECT_EQ(nlohmann::json::parse(info.out)["array"]["shape"], (nlohmann::json{6, 5}));
    ASSERT_EQ(run_cframe({"convert", "-f", path(store + "/tiny.b2nd"), path("x.npy")}).status, tools::done);
    ASSERT_EQ(run_cframe({"unpack", "-f", path(store + "/group/in.b2f"), path("x")}).status, tools::done);
    EXPECT_EQ(file_bytes(path("x")), varied_items(2500));
    EXPECT_EQ(run_cframe({"info", path(store + "/none.b2f")}).status, tools::kUsageError);
  }
}

TEST_F(StorePaths, VerifyLooksIntoStores) {
  using Names = std::vector<std::string>;
  for (const std::string store : {"stored.b2z", "deflated.b2z"})
    EXPECT_EQ(verified(store), (Names{store + "/group/in.b2f", store + "/raw.b2f", store + "/tiny.b2nd"}));
  EXPECT_EQ(verified("e.b2e"), (Names{"e.b2e", "e.b2e/group/in.b2f", "e.b2e/tiny.b2nd"}));
  EXPECT_EQ(verified("d.b2d"), (Names{"d.b2d/embed.b2e", "d.b2d/raw.b2f", "d.b2d/group/in.b2f", "d.b2d/tiny.b2nd"}));
  EXPECT_EQ(verified("").size(), 13U);
}

TEST_F(StorePaths, DamageInAStoreIsFound) {
  const Bytes embed = embed_frame({}, "b2tree");
  dir_.write("bad.b2z",
             zip_file({{"a.b2f", flat(5000), 8, 0, 0, false, {}, 1}, {"b.b2f", flat(9), 8}, {"embed.b2e", embed}}));
  EXPECT_EQ(verified("bad.b2z", tools::kDataError), std::vector<std::string>{"bad.b2z/b.b2f"});
  Bytes cut = zip_file({{"a.b2f", flat(50)}, {"embed.b2e", Bytes(20, 'x')}});
  dir_.write("cut.b2z", cut);
  EXPECT_EQ(run_cframe({"verify", path("cut.b2z")}).status, tools::kDataError);
  dir_.write("other.b2z", zip_file({{"readme", Bytes(20, 'x')}}));
  EXPECT_EQ(run_cframe({"verify", path("other.b2z")}).status, tools::kDataError);
}

TEST_F(StorePaths, MembersAreListedAndUnpacked) {
  for (const std::string store : {"stored.b2z", "deflated.b2z", "e.b2e", "d.b2d"}) {
    SCOPED_TRACE(store);
    const Ran ran = run_cframe({"ls", "-r", "--json", path(store)});
    EXPECT_EQ(ran.status, tools::done) << ran.err;
    EXPECT_NE(ran.out.find(path(store) + "/group/in.b2"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find(path(store) + "/tiny.b2nd"), std::string::npos) << ran.out;
    EXPECT_EQ(run_cframe({"unpack", "-q", "-r", "--to", path("out"), path(store)}).status, tools::done);
    EXPECT_EQ(file_bytes(path("out/" + store + "/tiny.npy")), cat(path(store) + "/tiny.b2nd"));
    EXPECT_EQ(file_bytes(path("out/" + store + "/group/in")).size(), 2500U);
    // A member cannot be removed.
    EXPECT_EQ(run_cframe({"unpack", "--rm", path(store) + "/tiny.b2nd", path("x.npy")}).status, tools::kUsageError);
  }
  EXPECT_EQ(run_cframe({"convert", "-q", "-r", "--to", path("new"), path("stored.b2z")}).status, tools::done);
  EXPECT_EQ(run_cframe({"diff", path("new/stored.b2z/raw.b2frame"), path("stored.b2z/raw.b2f")}).status, tools::done);
  // Without -r a store lists its members; in a directory it is one line.
  const Ran ran = run_cframe({"ls", "--json", dir_.path().string()});
  EXPECT_NE(ran.out.find("\"type\":\"store\""), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("tiny"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace cframefs::test
