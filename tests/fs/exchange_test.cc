// Another program exchanges entries while the filesystem works on them: whatever it does happens to the file that it
// was asked about, or to none.
//
// Each operation is tried on each kind of file, with an exchange before each call that takes a name in turn: of the
// entry itself, of the directory that holds it, and of either for a symbolic link. Names lead to a second set of files
// then, of which nothing may change. What unlink(2), rmdir(2) and rename(2) name is one name in a directory, as on any
// filesystem: for them only directories are exchanged.
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "frame/cframe/sparse_frame.h"
#include "tests/fs/exchanges.h"
#include "tests/support/frame_builder.h"
#include "tests/support/temp_dir.h"

namespace cframefs::fs {
namespace {

constexpr const char* kPlainName = "plain";
constexpr const char* kFrameName = "frame.b2frame";
constexpr const char* kSparseName = "sparse.b2frame";
constexpr const char* kDirectoryName = "directory";
constexpr const char* kLinkName = "link";
constexpr const char* kColour = "user.colour";

std::string shown(const std::string& stored) {
  return stored.substr(0, stored.find(".b2frame"));
}

/// One source with two directories of the same names, and a filesystem that knows all of "mine".
class TwoSets {
 public:
  explicit TwoSets(std::filesystem::path at) : at_(std::move(at)) {
    make("mine", 'm');
    make("theirs", 't');
    theirs_.watch(path("theirs"));
    options_.source = at_;
    options_.commit_interval = 1000;
    filesystem_ = std::make_unique<Filesystem>(files_, options_);
    EXPECT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
    mine_ = look_up(*filesystem_, kRootNode, "mine");
    for (const char* name : {kPlainName, kFrameName, kSparseName, kDirectoryName, kLinkName})
      nodes_[name] = look_up(*filesystem_, mine_, shown(name));
  }
  ~TwoSets() { filesystem_->stop(); }
  TwoSets(const TwoSets&) = delete;
  TwoSets& operator=(const TwoSets&) = delete;

  Filesystem& filesystem() { return *filesystem_; }
  test::ExchangingFiles& files() { return files_; }
  NodeId directory() const { return mine_; }
  NodeId node(const std::string& name) const { return nodes_.at(name); }
  std::filesystem::path path(const std::string& name) const { return at_ / name; }
  const WatchedFiles& theirs() const { return theirs_; }

 private:
  void make(const std::string& directory, char letter) const {
    std::filesystem::create_directories(path(directory) / kDirectoryName / "inner");
    std::filesystem::create_directory(path(directory) / kSparseName);
    const test::Bytes content(1000, static_cast<std::uint8_t>(letter));
    write_file(at_ / (directory + "/" + kPlainName), content);
    write_file(at_ / (directory + "/" + kDirectoryName + "/file"), content);
    test::FrameBuilder frame = test::plain_frame(content, 256);
    write_file(at_ / (directory + "/" + kFrameName), frame.build());
    for (const auto& [name, bytes] : test::sparse_frame(content, 256))
      write_file(path(directory) / kSparseName / name, bytes);
    std::filesystem::create_symlink(std::string("to-") + letter, path(directory) / kLinkName);
    for (const char* name : {kPlainName, kFrameName, kDirectoryName})
      EXPECT_EQ(::setxattr((path(directory) / name).c_str(), kColour, &letter, 1, 0), 0);
  }
  const std::filesystem::path at_;
  test::ExchangingFiles files_;
  NoCaches kernel_;
  MountOptions options_;
  std::unique_ptr<Filesystem> filesystem_;
  NodeId mine_ = 0;
  std::map<std::string, NodeId> nodes_;
  WatchedFiles theirs_;
};

/// What another program does.
struct Exchange {
  std::string what;
  bool of_entry = false;  // not of a directory
  std::function<void(const TwoSets&, const std::string& name)> run;
};

std::vector<Exchange> exchanges() {
  return {
      {"the entry", true,
       [](const TwoSets& sets, const std::string& name) {
         swap(sets.path("mine/" + name), sets.path("theirs/" + name));
       }},
      {"the entry for a link", true,
       [](const TwoSets& sets, const std::string& name) {
         put_link(sets.path("mine/" + name), sets.path("theirs/" + name));
       }},
      {"the directory", false,
       [](const TwoSets& sets, const std::string&) { swap(sets.path("mine"), sets.path("theirs")); }},
      {"the directory for a link", false,
       [](const TwoSets& sets, const std::string&) { put_link(sets.path("mine"), sets.path("theirs")); }},
  };
}

/// What the filesystem is asked to do. Answers what it was told, for reads; empty: an error, or nothing.
struct Operation {
  std::string what;
  std::vector<std::string> kinds;
  bool names_entry = false;  // what lies at a name, whatever it is
  std::function<std::string(TwoSets&, const std::string& name)> run;
};

const std::vector<std::string> kFiles = {kPlainName, kFrameName, kSparseName};
const std::vector<std::string> kAll = {kPlainName, kFrameName, kSparseName, kDirectoryName, kLinkName};

Operation changes(const std::string& what, std::vector<std::string> kinds, AttributeChanges changes) {
  return {what, std::move(kinds), false, [changes](TwoSets& sets, const std::string& name) {
            return failed(sets.filesystem().attributes().change(sets.node(name), nullptr, changes));
          }};
}

std::string write_and_sync(TwoSets& sets, FileHandle& handle) {
  const std::vector<std::uint8_t> bytes(300, 'w');
  static_cast<void>(sets.filesystem().files().write(handle, 100, bytes, false));
  return failed(sets.filesystem().files().sync(handle, false));
}

/// Changes of files.
std::vector<Operation> file_operations() {
  const SomeChanges some;
  return {
      changes("chmod", {kPlainName, kFrameName, kSparseName, kDirectoryName}, some.mode),
      changes("chown", kAll, some.owner),
      changes("utimens", kAll, some.times),
      changes("truncate", kFiles, some.size),
      {"setxattr", kAll, false,
       [](TwoSets& sets, const std::string& name) {
         return failed(sets.filesystem().extended_attributes().set(sets.node(name), kColour, "new", 0));
       }},
      {"removexattr", kAll, false,
       [](TwoSets& sets, const std::string& name) {
         return failed(sets.filesystem().extended_attributes().remove(sets.node(name), kColour));
       }},
      {"set a metalayer",
       {kFrameName, kSparseName},
       false,
       [](TwoSets& sets, const std::string& name) {
         return failed(sets.filesystem().extended_attributes().set(sets.node(name), "user.blosc2.vlmeta.x", "new", 0));
       }},
      {"write", kFiles, false,
       [](TwoSets& sets, const std::string& name) {
         return with_open(sets.filesystem(), sets.node(name), O_RDWR,
                          [&](FileHandle& file) { return write_and_sync(sets, file); });
       }},
      {"open with O_TRUNC", kFiles, false,
       [](TwoSets& sets, const std::string& name) {
         return with_open(sets.filesystem(), sets.node(name), O_WRONLY | O_TRUNC, [](FileHandle&) { return ""; });
       }},
      {"link",
       {kPlainName, kLinkName},
       false,
       [](TwoSets& sets, const std::string& name) {
         return failed(sets.filesystem().names().link(sets.node(name), sets.directory(), "second"));
       }},
  };
}

/// Changes of directories.
std::vector<Operation> naming_operations() {
  const auto in_directory = [](auto make) {
    return [make](TwoSets& sets, const std::string&) { return failed(make(sets.filesystem(), sets.directory())); };
  };
  return {
      {"create", {kPlainName}, false, in_directory([](Filesystem& fs, NodeId at) {
         auto made = fs.names().create(at, "new", O_RDWR | O_CREAT, 0644, {});
         if (made) fs.files().release(std::move(made->handle));
         return made;
       })},
      {"mkdir", {kPlainName}, false, in_directory([](Filesystem& fs, NodeId at) {
         return fs.names().make_directory(at, "new", 0755, {});
       })},
      {"mknod", {kPlainName}, false, in_directory([](Filesystem& fs, NodeId at) {
         return fs.names().make_node(at, "new", S_IFIFO | 0644, 0, {});
       })},
      {"symlink", {kPlainName}, false, in_directory([](Filesystem& fs, NodeId at) {
         return fs.names().make_symlink(at, "new", "x", {});
       })},
      {"unlink",
       {kPlainName, kFrameName, kSparseName, kLinkName},
       true,
       [](TwoSets& sets, const std::string& name) {
         return failed(sets.filesystem().names().remove(sets.directory(), shown(name), false));
       }},
      {"rename", kAll, true,
       [](TwoSets& sets, const std::string& name) {
         return failed(sets.filesystem().names().rename(sets.directory(), shown(name), sets.directory(), "moved", 0));
       }},
      {"rename over another",
       {kPlainName},
       true,
       [](TwoSets& sets, const std::string&) {
         return failed(
             sets.filesystem().names().rename(sets.directory(), shown(kFrameName), sets.directory(), kPlainName, 0));
       }},
  };
}

std::vector<Operation> looking_operations() {
  return {
      {"read", kFiles, false,
       [](TwoSets& sets, const std::string& name) {
         return with_open(sets.filesystem(), sets.node(name), O_RDONLY,
                          [&](FileHandle& file) { return read_all(sets.filesystem(), file); });
       }},
      {"getxattr",
       {kPlainName, kFrameName, kDirectoryName},
       false,
       [](TwoSets& sets, const std::string& name) {
         return sets.filesystem().extended_attributes().get(sets.node(name), kColour).value_or("");
       }},
      {"readlink",
       {kLinkName},
       false,
       [](TwoSets& sets, const std::string& name) {
         return sets.filesystem().links().read_link(sets.node(name)).value_or("");
       }},
      {"stat", kAll, false,
       [](TwoSets& sets, const std::string& name) {
         const auto found = sets.filesystem().attributes().of(sets.node(name), nullptr);
         if (!found) return failed(found);
         return std::string(sets.theirs().has_inode(found->status.st_ino & ~InodeNumbers::kView) ? "theirs" : "mine");
       }},
  };
}

class ExchangeTest : public ::testing::Test {
 protected:
  /// Runs `operation` with the exchange before each of its calls that takes a name.
  static void try_all(const Operation& operation, const std::string& name, const Exchange& exchange,
                      const std::function<void(TwoSets&, const std::string& answer)>& check) {
    for (int call = 1;; ++call) {
      SCOPED_TRACE(operation.what + " of " + name + ", exchange of " + exchange.what + " before call " +
                   std::to_string(call));
      const test::TempDir temp(test::directory_for_many_files());
      TwoSets sets(temp.path());
      sets.files().before(call, [&] { exchange.run(sets, name); });
      const std::string answer = operation.run(sets, name);
      const bool done = sets.files().done();
      sets.files().before(0, nullptr);
      EXPECT_FALSE(sets.files().resolved_a_path());
      check(sets, answer);
      if (!done) return;
      if (HasFailure() || call > 200) return;
    }
  }
};

// semantics: F7
TEST_F(ExchangeTest, ChangesReachTheFileThatWasAskedFor) {
  std::vector<Operation> operations = file_operations();
  std::vector<Operation> naming = naming_operations();
  for (Operation& operation : naming)
    operations.push_back(std::move(operation));
  at_once(operations, [](const Operation& operation) {
    for (const std::string& name : operation.kinds) {
      for (const Exchange& exchange : exchanges()) {
        if (exchange.of_entry && operation.names_entry) continue;
        try_all(operation, name, exchange, [](TwoSets& sets, const std::string&) {
          EXPECT_EQ(sets.theirs().touched(), std::vector<std::string>{});
        });
      }
    }
  });
}

// semantics: F7
TEST_F(ExchangeTest, LooksTellOfTheFileThatWasAskedFor) {
  at_once(looking_operations(), [](const Operation& operation) {
    for (const std::string& name : operation.kinds) {
      const test::TempDir temp(test::directory_for_many_files());
      TwoSets at_rest(temp.path());
      const std::string mine = operation.run(at_rest, name);
      for (const Exchange& exchange : exchanges()) {
        try_all(operation, name, exchange, [&](TwoSets& sets, const std::string& answer) {
          EXPECT_TRUE(answer == mine || answer.empty() || answer == std::to_string(ESTALE)) << answer;
          EXPECT_EQ(sets.theirs().touched(), std::vector<std::string>{});
        });
      }
    }
  });
}

}  // namespace
}  // namespace cframefs::fs
