// Another program exchanges stores, or what lies in the directory of one, while the filesystem works on what they hold:
// what it reads is of the store that it was asked about, or nothing, and no file is changed.
//
// As exchange_test.cc, for stores of each kind, their groups and their members.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/xattr.h>

#include "frame/store/store_files.h"
#include "tests/fs/exchanges.h"
#include "tests/support/frame_builder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zip_builder.h"

namespace cframefs::fs {
namespace {

constexpr const char* kTitle = "user.blosc2.vlmeta.title";
constexpr const char* kTag = "user.tag";
constexpr int kFewDescriptors = 64;

/// What is asked about, as the mount shows it, and what on disk another program can exchange for that: "" is the
/// directory that holds the stores.
struct Target {
  std::string shown;
  bool is_directory = false;
  bool is_store = false;  // itself
  std::vector<std::string> on_disk;
};

std::vector<Target> targets() {
  return {
      {"zip.b2z", true, true, {"", "zip.b2z"}},
      {"zip.b2z/raw", false, false, {"", "zip.b2z"}},
      {"zip.b2z/in", false, false, {"", "zip.b2z"}},
      {"zip.b2z/group", true, false, {"", "zip.b2z"}},
      {"zip.b2z/group/raw", false, false, {"", "zip.b2z"}},
      {"embed.b2e", true, true, {"", "embed.b2e"}},
      {"embed.b2e/in", false, false, {"", "embed.b2e"}},
      {"directory.b2d", true, true, {"", "directory.b2d"}},
      {"directory.b2d/in", false, false, {"", "directory.b2d", "directory.b2d/embed.b2e"}},
      {"directory.b2d/own", false, false, {"", "directory.b2d", "directory.b2d/own.b2f"}},
      {"directory.b2d/inner", true, false, {"", "directory.b2d", "directory.b2d/embed.b2e"}},
      {"directory.b2d/group", true, false, {"", "directory.b2d", "directory.b2d/group"}},
      {"directory.b2d/group/own",
       false,
       false,
       {"", "directory.b2d", "directory.b2d/group", "directory.b2d/group/own.b2f"}},
  };
}

/// Two directories of stores of the same names, and a filesystem that knows all of "mine".
class TwoStores {
 public:
  /// `forgets_directories`: it has let go of all directories that it held.
  TwoStores(std::filesystem::path at, bool forgets_directories) : at_(std::move(at)) {
    make("mine", 'm', 1000);
    make("theirs", 't', 900);
    theirs_.watch(path("theirs"));
    options_.source = at_;
    filesystem_ = std::make_unique<Filesystem>(stores_, options_);
    open_source(forgets_directories);
    filesystem_->start(kernel_);
    nodes_[""] = look_up(*filesystem_, kRootNode, "mine");
    for (const Target& target : targets()) {
      const std::size_t slash = target.shown.rfind('/');
      const std::string parent = slash == std::string::npos ? "" : target.shown.substr(0, slash);
      nodes_[target.shown] =
          look_up(*filesystem_, nodes_.at(parent), target.shown.substr(parent.empty() ? 0 : slash + 1));
    }
    for (int number = 0; forgets_directories && number < kFewDescriptors / 4; ++number) {
      const std::string name = "other-" + std::to_string(number);
      std::filesystem::create_directories(path(name) / "x");
      look_up(*filesystem_, look_up(*filesystem_, kRootNode, name), "x");
    }
  }
  ~TwoStores() { filesystem_->stop(); }
  TwoStores(const TwoStores&) = delete;
  TwoStores& operator=(const TwoStores&) = delete;

  Filesystem& filesystem() { return *filesystem_; }
  test::ExchangingFiles& files() { return files_; }
  const WatchedFiles& theirs() const { return theirs_; }
  NodeId node(const std::string& shown) const { return nodes_.at(shown); }
  /// The directory that holds it, and its name there.
  std::pair<NodeId, std::string> place(const std::string& shown) const {
    const std::size_t slash = shown.rfind('/');
    if (slash == std::string::npos) return {node(""), shown};
    return {node(shown.substr(0, slash)), shown.substr(slash + 1)};
  }
  std::filesystem::path path(const std::string& name) const { return at_ / name; }

 private:
  /// A quarter of what the process may open is how many directories it holds.
  void open_source(bool with_few_descriptors) {
    rlimit limit{};
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlimit few = limit;
    few.rlim_cur = kFewDescriptors;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, with_few_descriptors ? &few : &limit), 0);
    EXPECT_TRUE(filesystem_->open_source(false));
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  void make(const std::string& set, char letter, std::size_t size) const {
    const test::Bytes content(size, static_cast<std::uint8_t>(letter));
    const test::Bytes frame = test::plain_frame(content, 256).build();
    test::FrameBuilder metadata = test::plain_frame(content, 256);
    metadata.vlmetalayers = {{"title", test::plain_chunk(content)}};
    std::filesystem::create_directories(path(set) / "directory.b2d" / "group");
    // A name that only one set has shows whose listing it is.
    const std::string other = std::string("only-") + letter;
    const test::Bytes embed =
        test::embed_frame({{"/in", frame}, {"/inner/in", frame}, {"/inner/" + other, frame}, {"/" + other, frame}});
    write_file(at_ / (set + "/embed.b2e"), embed);
    write_file(at_ / (set + "/zip.b2z"), test::zip_file({{"raw.b2f", frame},
                                                         {"group/raw.b2f", frame},
                                                         {"group/" + other + ".b2f", frame},
                                                         {"group/__vlmeta__.b2f", metadata.build()},
                                                         {"embed.b2e", embed}}));
    const std::string directory = set + "/directory.b2d/";
    write_file(at_ / (directory + "embed.b2e"), embed);
    write_file(at_ / (directory + "own.b2f"), frame);
    write_file(at_ / (directory + "group/own.b2f"), frame);
    write_file(at_ / (directory + "group/" + other + ".b2f"), frame);
    write_file(at_ / (directory + "group/__vlmeta__.b2f"), metadata.build());
    for (const char* store : {"/embed.b2e", "/zip.b2z", "/directory.b2d"})
      EXPECT_EQ(::setxattr(path(set + store).c_str(), kTag, &letter, 1, 0), 0);
  }
  const std::filesystem::path at_;
  test::ExchangingFiles files_;
  frame::StoreFiles stores_{files_};
  NoCaches kernel_;
  MountOptions options_;
  std::unique_ptr<Filesystem> filesystem_;
  std::map<std::string, NodeId> nodes_;
  WatchedFiles theirs_;
};

struct StoreOperation {
  std::string what;
  std::function<bool(const Target&)> is_for;
  std::function<std::string(TwoStores&, const std::string& shown)> run;
};

bool any(const Target&) {
  return true;
}
bool is_directory(const Target& target) {
  return target.is_directory;
}
bool is_file(const Target& target) {
  return !target.is_directory;
}

std::string list(Filesystem& filesystem, NodeId node) {
  auto handle = filesystem.directories().open(node);
  if (!handle) return failed(handle);
  codec::MutexLock lock((*handle)->mutex);
  if (auto listed = filesystem.directories().list(**handle); !listed) return failed(listed);
  std::string names;
  for (const ShownEntry& entry : (*handle)->entries)
    names += entry.shown + " ";
  return names;
}

/// An error is none that tells of another file.
template <class T>
std::string text_or_nothing(const codec::Result<T>& text) {
  return text ? std::string(text->begin(), text->end()) : "";
}

std::vector<StoreOperation> looks() {
  return {
      {"read", is_file,
       [](TwoStores& sets, const std::string& shown) {
         return with_open(sets.filesystem(), sets.node(shown), O_RDONLY,
                          [&](FileHandle& file) { return read_all(sets.filesystem(), file); });
       }},
      {"stat", any,
       [](TwoStores& sets, const std::string& shown) {
         const auto found = sets.filesystem().attributes().of(sets.node(shown), nullptr);
         return found ? std::to_string(found->status.st_size) : failed(found);
       }},
      {"list", is_directory,
       [](TwoStores& sets, const std::string& shown) { return list(sets.filesystem(), sets.node(shown)); }},
      {"getxattr of the title", is_directory,
       [](TwoStores& sets, const std::string& shown) {
         return text_or_nothing(sets.filesystem().extended_attributes().get(sets.node(shown), kTitle));
       }},
      {"getxattr of the tag", any,
       [](TwoStores& sets, const std::string& shown) {
         return text_or_nothing(sets.filesystem().extended_attributes().get(sets.node(shown), kTag));
       }},
      {"getxattr of the frame", is_file,
       [](TwoStores& sets, const std::string& shown) {
         return text_or_nothing(sets.filesystem().extended_attributes().get(sets.node(shown), "user.blosc2.info"));
       }},
  };
}

StoreOperation changes(const std::string& what, const AttributeChanges& changes) {
  return {what, any, [changes](TwoStores& sets, const std::string& shown) {
            return failed(sets.filesystem().attributes().change(sets.node(shown), nullptr, changes));
          }};
}

std::vector<StoreOperation> changes_of_files() {
  const SomeChanges some;
  return {
      changes("chmod", some.mode),
      changes("chown", some.owner),
      changes("utimens", some.times),
      changes("truncate", some.size),
      {"setxattr", any,
       [](TwoStores& sets, const std::string& shown) {
         return failed(sets.filesystem().extended_attributes().set(sets.node(shown), kTag, "new", 0));
       }},
      {"removexattr", any,
       [](TwoStores& sets, const std::string& shown) {
         return failed(sets.filesystem().extended_attributes().remove(sets.node(shown), kTag));
       }},
      {"setxattr of the title", any,
       [](TwoStores& sets, const std::string& shown) {
         return failed(sets.filesystem().extended_attributes().set(sets.node(shown), kTitle, "new", 0));
       }},
      {"open with O_TRUNC", is_file,
       [](TwoStores& sets, const std::string& shown) {
         return with_open(sets.filesystem(), sets.node(shown), O_RDWR | O_TRUNC, [](FileHandle&) { return ""; });
       }},
      {"link", is_file,
       [](TwoStores& sets, const std::string& shown) {
         return failed(sets.filesystem().names().link(sets.node(shown), sets.node(""), "second"));
       }},
  };
}

std::vector<StoreOperation> changes_of_names() {
  const auto within = [](auto make) {
    return
        [make](TwoStores& sets, const std::string& shown) { return failed(make(sets.filesystem(), sets.node(shown))); };
  };
  return {
      {"create", is_directory, within([](Filesystem& fs, NodeId at) {
         auto made = fs.names().create(at, "new", O_RDWR | O_CREAT, 0644, {});
         if (made) fs.files().release(std::move(made->handle));
         return made;
       })},
      {"mkdir", is_directory,
       within([](Filesystem& fs, NodeId at) { return fs.names().make_directory(at, "new", 0755, {}); })},
      {"mknod", is_directory,
       within([](Filesystem& fs, NodeId at) { return fs.names().make_node(at, "new", S_IFIFO | 0644, 0, {}); })},
      {"symlink", is_directory,
       within([](Filesystem& fs, NodeId at) { return fs.names().make_symlink(at, "new", "x", {}); })},
      {"fsync", is_directory, within([](Filesystem& fs, NodeId at) { return fs.directories().sync(at); })},
      {"unlink or rmdir", [](const Target& target) { return !target.is_store; },
       [](TwoStores& sets, const std::string& shown) {
         const auto [directory, name] = sets.place(shown);
         static_cast<void>(sets.filesystem().names().remove(directory, name, true));
         return failed(sets.filesystem().names().remove(directory, name, false));
       }},
      {"rename", [](const Target& target) { return !target.is_store; },
       [](TwoStores& sets, const std::string& shown) {
         const auto [directory, name] = sets.place(shown);
         return failed(sets.filesystem().names().rename(directory, name, sets.node(""), "moved", 0));
       }},
  };
}

class ExchangeStoresTest : public ::testing::Test {
 protected:
  /// With each exchange before each of its calls that takes a name.
  static void try_all(const StoreOperation& operation, const Target& target, bool forgets_directories,
                      const std::function<void(TwoStores&, const std::string& answer)>& check) {
    for (const std::string& place : target.on_disk) {
      for (const bool for_link : {false, true}) {
        bool done = true;
        for (int call = 1; done && call < 200 && !HasFailure(); ++call) {
          SCOPED_TRACE(operation.what + " of " + target.shown + ", exchange of /" + place +
                       (for_link ? " for a link" : "") + " before call " + std::to_string(call));
          const test::TempDir temp(test::directory_for_many_files());
          TwoStores sets(temp.path(), forgets_directories);
          sets.files().before(call, [&] {
            const auto mine = sets.path("mine/" + place);
            const auto theirs = sets.path("theirs/" + place);
            if (for_link) {
              put_link(place.empty() ? sets.path("mine") : mine, place.empty() ? sets.path("theirs") : theirs);
            } else if (place.empty()) {
              swap(sets.path("mine"), sets.path("theirs"));
            } else {
              swap(mine, theirs);
            }
          });
          const std::string answer = operation.run(sets, target.shown);
          done = sets.files().done();
          sets.files().before(0, nullptr);
          EXPECT_FALSE(sets.files().resolved_a_path());
          EXPECT_EQ(sets.theirs().touched(), std::vector<std::string>{});
          check(sets, answer);
        }
      }
    }
  }

  using Case = std::pair<StoreOperation, Target>;
  static std::vector<Case> cases(const std::vector<StoreOperation>& operations) {
    std::vector<Case> found;
    for (const StoreOperation& operation : operations) {
      for (const Target& target : targets()) {
        if (operation.is_for(target)) found.emplace_back(operation, target);
      }
    }
    return found;
  }
  static void try_look(const Case& one, bool forgets_directories) {
    const auto& [operation, target] = one;
    const test::TempDir temp(test::directory_for_many_files());
    TwoStores at_rest(temp.path(), false);
    const std::string mine = operation.run(at_rest, target.shown);
    try_all(operation, target, forgets_directories, [&](TwoStores&, const std::string& answer) {
      EXPECT_TRUE(answer == mine || answer.empty() || answer == std::to_string(ESTALE)) << answer;
    });
  }
  static void try_change(const Case& one, bool forgets_directories) {
    try_all(one.first, one.second, forgets_directories, [](TwoStores&, const std::string&) {});
  }
};

TEST_F(ExchangeStoresTest, LooksTellOfTheStoreThatWasAskedFor) {
  at_once(cases(looks()), [](const Case& one) { try_look(one, false); });
}

TEST_F(ExchangeStoresTest, ChangesReachNoOtherFile) {
  at_once(cases(changes_of_files()), [](const Case& one) { try_change(one, false); });
  // They are refused after the look-up of the names: one of each kind will do.
  std::vector<Case> of_names = cases(changes_of_names());
  std::erase_if(of_names, [](const Case& one) {
    const std::string& shown = one.second.shown;
    return shown != "zip.b2z/raw" && shown != "directory.b2d/own" && shown != "directory.b2d/in" &&
           shown != "directory.b2d/group" && shown != "zip.b2z/group";
  });
  at_once(of_names, [](const Case& one) { try_change(one, false); });
}

TEST_F(ExchangeStoresTest, DirectoriesThatAreOpenedAgainAreThoseThatWereAskedFor) {
  for (const Case& one : cases(looks())) {
    if (one.first.what == "read" || one.first.what == "list") try_look(one, true);
  }
  for (const Case& one : cases(changes_of_files())) {
    if (one.first.what == "chmod") try_change(one, true);
  }
}

}  // namespace
}  // namespace cframefs::fs
