// Each call of an operation fails once, calls that only look included: what the mount shows afterwards is a state
// before or after one of the operation's steps, whole, and the disk holds what the mount shows.
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <sys/xattr.h>

#include "frame/cframe/frame_container.h"
#include "frame/open/open.h"
#include "fs/filesystem.h"
#include "tests/fs/silent_kernel.h"
#include "tests/support/array_builder.h"
#include "tests/support/failing_files.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs::fs {
namespace {

using test::Bytes;
using test::FailingFiles;
using Done = codec::Result<void>;

constexpr std::uint64_t kChunkBytes = 4096;
constexpr const char* kTitle = "user.blosc2.vlmeta.title";
constexpr const char* kFixed = "user.blosc2.meta.fixed";
constexpr const char* kOther = "user.other";
constexpr const char* kNames[] = {"x", "y", "z", "n", "s", "u", "a.npy", "n.npy"};

Bytes stripes(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 5 + i / 256 * seed + seed);
  return bytes;
}

/// What numpy.save writes of 30 x 25 numbers of 4 bytes.
Bytes saved_array() {
  const std::string head = "{'descr': '<i4', 'fortran_order': False, 'shape': (30, 25), }";
  Bytes bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
  bytes.insert(bytes.end(), head.begin(), head.end());
  bytes.resize(127, ' ');
  bytes.push_back('\n');
  const Bytes items = stripes(3000, 9);
  bytes.insert(bytes.end(), items.begin(), items.end());
  return bytes;
}

/// No power is cut here: what a sync does to a disk is not waited for.
class UnsyncedFiles final : public test::ForwardingFiles {
 public:
  /// `has_flags`: the filesystem has the flags of renameat2(2).
  explicit UnsyncedFiles(bool has_flags) : has_flags_(has_flags) {}
  Done rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir, const std::string& to,
                 unsigned flags) override {
    if (!has_flags_ && flags != 0) return codec::io_error(EINVAL, "rename");
    return ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
  }
  Done sync(frame::OpenFile /*file*/, bool /*data_only*/) override { return {}; }

 private:
  const bool has_flags_;
};

/// What a mount shows: of each name the content and the attributes.
using View = std::map<std::string, std::string>;

std::string differences(const View& one, const View& other) {
  std::string text;
  const auto brief = [](const View& view, const std::string& name) {
    const auto found = view.find(name);
    if (found == view.end()) return std::string("missing");
    return std::to_string(found->second.size()) + " bytes, hash " +
           std::to_string(std::hash<std::string>()(found->second) % 10'000);
  };
  for (const char* name : kNames) {
    if (brief(one, name) != brief(other, name))
      text += std::string(" ") + name + ": " + brief(one, name) + ", or " + brief(other, name) + ";";
  }
  return text;
}

/// A mount, and the handles that a program has open, by the names that it opened.
class ProgramsMount {
 public:
  ProgramsMount(const std::string& source, frame::FileOps& files) {
    MountOptions options;
    options.source = source;
    options.new_frames.chunksize = static_cast<std::int32_t>(kChunkBytes);
    options.new_frames.npy_as_array = true;
    options.commit_interval = 1000;
    options.lock_timeout = 0;
    filesystem_ = std::make_unique<Filesystem>(files, options);
    EXPECT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
  }
  ~ProgramsMount() { end(); }
  ProgramsMount(const ProgramsMount&) = delete;
  ProgramsMount& operator=(const ProgramsMount&) = delete;

  void end() {
    for (auto& [name, handle] : handles_)
      filesystem_->files().release(std::move(handle));
    handles_.clear();
    if (filesystem_) filesystem_->stop();
    filesystem_.reset();
  }
  Filesystem& filesystem() { return *filesystem_; }
  OpenFiles& files() { return filesystem_->files(); }
  FileHandle& handle(const std::string& name) { return *handles_.at(name); }

  codec::Result<NodeId> node(const std::string& name) {
    auto found = filesystem_->names().lookup(kRootNode, name);
    if (!found) return codec::Failure(found.error());
    return found->node;
  }
  Done open(const std::string& name, int flags) {
    const auto found = node(name);
    if (!found) return codec::Failure(found.error());
    auto handle = files().open(*found, flags);
    if (!handle) return codec::Failure(handle.error());
    handles_[name] = std::move(*handle);
    return {};
  }
  Done create(const std::string& name) {
    auto made = filesystem_->names().create(kRootNode, name, O_RDWR, 0644, {});
    if (!made) return codec::Failure(made.error());
    handles_[name] = std::move(made->handle);
    return {};
  }
  Done close(const std::string& name) {
    auto done = files().flush(handle(name));
    files().release(std::move(handles_.at(name)));
    handles_.erase(name);
    return done;
  }
  View view() {
    View view;
    for (const char* name : kNames) {
      const auto found = node(name);
      if (found || found.error().sys != ENOENT)
        view[name] = found ? shown(*found) : "not found: " + found.error().reason;
    }
    return view;
  }

 private:
  std::string shown(NodeId id) {
    auto handle = files().open(id, O_RDONLY);
    if (!handle) return "not opened: " + handle.error().reason;
    Reply reply;
    const auto read = files().read(**handle, 0, 1 << 20, reply);
    const auto attributes = filesystem_->attributes().of(id, handle->get());
    files().release(std::move(*handle));
    if (!read) return "not read: " + read.error().reason;
    if (!attributes) return "no attributes: " + attributes.error().reason;
    std::string text(reply.size(), '\0');
    reply.copy_to(reinterpret_cast<std::uint8_t*>(text.data()));
    if (text.size() != static_cast<std::uint64_t>(attributes->status.st_size)) text += "and a size that differs";
    for (const char* name : {kTitle, kFixed, kOther}) {
      const auto value = filesystem_->extended_attributes().get(id, name);
      if (value) text += std::string("\n") + name + "=" + *value;
    }
    return text;
  }

  SilentKernel kernel_;
  std::unique_ptr<Filesystem> filesystem_;
  std::map<std::string, std::unique_ptr<FileHandle>> handles_;
};

using Step = std::function<Done(ProgramsMount&)>;

Step opens(const std::string& name, int flags = O_RDWR) {
  return [=](ProgramsMount& mount) { return mount.open(name, flags); };
}
Step creates(const std::string& name) {
  return [=](ProgramsMount& mount) { return mount.create(name); };
}
Step closes(const std::string& name) {
  return [=](ProgramsMount& mount) { return mount.close(name); };
}
Step writes(const std::string& name, std::uint64_t at, const Bytes& bytes) {
  return [=](ProgramsMount& mount) { return mount.files().write(mount.handle(name), at, bytes, false); };
}
Step writes(const std::string& name, std::uint64_t at, std::size_t size, unsigned seed) {
  return writes(name, at, stripes(size, seed));
}
/// Opened, and written in part, without a commit.
Step dirties(const std::string& name, unsigned seed = 3) {
  return [=](ProgramsMount& mount) -> Done {
    if (auto opened = mount.open(name, O_RDWR); !opened) return opened;
    return mount.files().write(mount.handle(name), 1000, stripes(50, seed), false);
  };
}
Step flushes(const std::string& name) {
  return [=](ProgramsMount& mount) { return mount.files().flush(mount.handle(name)); };
}
Step syncs(const std::string& name) {
  return [=](ProgramsMount& mount) { return mount.files().sync(mount.handle(name), false); };
}
Step allocates(const std::string& name, int mode, std::uint64_t at, std::uint64_t length) {
  return [=](ProgramsMount& mount) { return mount.files().allocate(mount.handle(name), mode, at, length); };
}
Step sets(const std::string& name, const std::string& attribute, const std::string& value) {
  return [=](ProgramsMount& mount) -> Done {
    const auto node = mount.node(name);
    if (!node) return codec::Failure(node.error());
    return mount.filesystem().extended_attributes().set(*node, attribute, value, 0);
  };
}
/// truncate(2) by name.
Step cuts(const std::string& name, std::uint64_t size) {
  return [=](ProgramsMount& mount) -> Done {
    const auto node = mount.node(name);
    if (!node) return codec::Failure(node.error());
    AttributeChanges changes;
    changes.size = size;
    const auto cut = mount.filesystem().attributes().change(*node, nullptr, changes);
    return cut ? Done() : codec::Failure(cut.error());
  };
}
/// copy_file_range(2) of a whole file.
Step copies(const std::string& from, const std::string& to, std::uint64_t at, std::uint64_t size) {
  return [=](ProgramsMount& mount) -> Done {
    const auto copied = mount.files().copy_range(mount.handle(from), 0, mount.handle(to), at, size);
    if (!copied) return codec::Failure(copied.error());
    // The chunks in front of one that cannot be read are copied.
    return *copied == size ? Done() : codec::io_error(EIO, "copy_file_range");
  };
}
Step renames(const std::string& from, const std::string& to, unsigned flags = 0) {
  return [=](ProgramsMount& mount) { return mount.filesystem().names().rename(kRootNode, from, kRootNode, to, flags); };
}
Step removes(const std::string& name) {
  return [=](ProgramsMount& mount) { return mount.filesystem().names().remove(kRootNode, name, false); };
}

struct Operation {
  const char* name;
  std::vector<Step> before;  // nothing fails there
  std::vector<Step> steps;
  bool has_flags = true;   // as UnsyncedFiles
  bool is_whole = true;    // it does not do a part
  bool is_undone = false;  // a step that fails changes nothing
};
using Operations = std::vector<Operation>;

void PrintTo(const Operation& operation, std::ostream* out) {
  *out << operation.name;
}

constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

// x: chunks; y: empty; z: chunks, others; s, u: sparse; a.npy: an array; n: nothing.
Operations changes_of_content() {
  return {
      {"punch", {opens("x")}, {allocates("x", kPunch, 4000, 9000), flushes("x")}},
      {"cut", {}, {cuts("x", 9000)}},
      {"empty", {}, {cuts("x", 0)}},
      {"grow", {}, {cuts("x", 50'000)}},
      {"replace", {}, {opens("x", O_RDWR | O_TRUNC), writes("x", 0, 5000, 3), closes("x")}},
      {"create_and_sync", {}, {creates("n"), writes("n", 0, 9000, 4), syncs("n"), writes("n", 0, 99, 5), closes("n")}},
      {"compact",
       {opens("x"), writes("x", 0, 20'000, 3), flushes("x"), writes("x", 0, 20'000, 4), flushes("x"),
        writes("x", 0, 20'000, 5)},
       {closes("x")}},
      {"copy_into_empty", {opens("x"), opens("y")}, {copies("x", "y", 0, 20'480), flushes("y")}, true, false},
      {"copy", {dirties("x"), dirties("z")}, {copies("x", "z", 8192, 20'480), flushes("z")}, true, false},
  };
}

Operations changes_of_attributes() {
  return {
      {"title_dirty", {dirties("x")}, {sets("x", kTitle, "text"), flushes("x")}},
      {"title_of_empty", {opens("y")}, {sets("y", kTitle, "text"), writes("y", 0, 9000, 4), flushes("y")}},
      {"fixed", {opens("x")}, {sets("x", kFixed, "abc")}},
      {"other", {dirties("x")}, {sets("x", kOther, "value"), flushes("x")}},
      {"title_sparse", {dirties("s")}, {sets("s", kTitle, "text"), flushes("s")}},
      {"title_array", {dirties("a.npy")}, {sets("a.npy", kTitle, "text"), flushes("a.npy")}},
  };
}

Operations changes_of_names() {
  return {
      {"rename", {dirties("x")}, {renames("x", "n"), writes("x", 4096, 5000, 4), flushes("x")}},
      {"rename_over", {dirties("x"), dirties("z")}, {renames("x", "z"), writes("x", 4096, 5000, 4), flushes("x")}},
      {"rename_new", {}, {creates("n"), writes("n", 0, 10'000, 4), renames("n", "x"), closes("n")}},
      {"rename_over_array", {dirties("x"), dirties("a.npy")}, {renames("x", "a.npy"), flushes("x"), flushes("a.npy")}},
      {"exchange", {dirties("x"), dirties("z")}, {renames("x", "z", RENAME_EXCHANGE), flushes("x"), flushes("z")}},
      {"remove", {dirties("x")}, {removes("x"), writes("x", 4096, 5000, 4), flushes("x")}},
      {"remove_sparse", {dirties("s")}, {removes("s"), writes("s", 4096, 5000, 4), flushes("s")}},
      {"over_sparse", {dirties("s")}, {renames("x", "s"), flushes("s")}},
      {"over_sparse_flagless", {dirties("s")}, {renames("x", "s"), flushes("s")}, false},
      {"sparse_over", {dirties("s"), dirties("x", 6)}, {renames("s", "x"), flushes("s"), flushes("x")}},
      {"sparse_over_sparse", {dirties("s"), dirties("u", 6)}, {renames("s", "u"), flushes("s"), flushes("u")}},
      {"sparse_over_array", {dirties("s"), dirties("a.npy")}, {renames("s", "a.npy"), flushes("s")}},
  };
}

Operations changes_of_sparse_frames_and_arrays() {
  return {
      {"punch_sparse", {opens("s")}, {allocates("s", kPunch, 4000, 9000), flushes("s")}},
      {"cut_sparse", {opens("s")}, {cuts("s", 9000), closes("s")}},
      {"write_array", {opens("a.npy")}, {writes("a.npy", 1000, 2000, 3), flushes("a.npy")}},
      {"append_array", {opens("a.npy")}, {writes("a.npy", 128 + 4800, 160, 3), flushes("a.npy")}},
      {"cut_array", {opens("a.npy")}, {cuts("a.npy", 128 + 800), closes("a.npy")}},
      {"new_array", {}, {creates("n.npy"), writes("n.npy", 0, saved_array()), closes("n.npy")}},
      {"other_array", {}, {opens("a.npy", O_RDWR | O_TRUNC), writes("a.npy", 0, saved_array()), closes("a.npy")}},
  };
}

Operations all_operations() {
  Operations all;
  for (const auto& some : {changes_of_content(), changes_of_attributes(), changes_of_sparse_frames_and_arrays()})
    all.insert(all.end(), some.begin(), some.end());
  for (Operation names : changes_of_names()) {
    names.is_undone = true;
    all.push_back(names);
  }
  return all;
}

/// The files of the source, by their paths.
std::map<std::string, Bytes> source_files() {
  std::map<std::string, Bytes> files;
  const auto put = [&](const std::string& name, std::size_t size, unsigned seed) {
    test::FrameBuilder frame = test::plain_frame(stripes(size, seed), static_cast<std::int32_t>(kChunkBytes));
    frame.metalayers.emplace_back("fixed", Bytes{1, 2, 3});
    files[name] = frame.build();
  };
  put("x.b2frame", 20'480, 1);
  put("y.b2frame", 0, 1);
  put("z.b2frame", 30'000, 2);
  for (const std::string name : {"s.b2frame", "u.b2frame"}) {
    for (const auto& [part, bytes] : test::sparse_frame(stripes(20'000, 7), static_cast<std::int32_t>(kChunkBytes)))
      files[name + "/" + part] = bytes;
  }
  const test::ArraySpec spec{{60, 10}, {16, 10}, {8, 10}, 8, "<f8"};
  files["a.b2nd"] = test::array_frame(spec, test::varied_items(spec.nbytes())).build();
  return files;
}

class FailingOperations : public ::testing::TestWithParam<std::tuple<Operation, FailingFiles::How>> {
 protected:
  void make_source() const {
    static const std::map<std::string, Bytes> files = source_files();
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      std::filesystem::remove_all(entry);
    for (const auto& [name, bytes] : files) {
      std::filesystem::create_directories((directory_.path() / name).parent_path());
      directory_.write(name, bytes);
    }
  }
  /// The states of the mount before the steps and after each of them, if nothing fails.
  std::vector<View> states_of(const Operation& operation) const {
    make_source();
    UnsyncedFiles files(operation.has_flags);
    ProgramsMount mount(directory_.path(), files);
    for (const Step& step : operation.before)
      EXPECT_TRUE(step(mount));
    std::vector<View> states = {mount.view()};
    for (const Step& step : operation.steps) {
      const auto done = step(mount);
      EXPECT_TRUE(done) << done.error().reason;
      states.push_back(mount.view());
    }
    return states;
  }
  /// What a mount shows of a frame that is on disk.
  static std::string stored(const std::filesystem::path& path, frame::ArrayForm form) {
    const auto opened = frame::open_path(frame::system_files(), path, nullptr);
    if (!opened) return "not opened: " + opened.error().reason;
    const auto view = frame::make_view(*opened, form, false);
    if (!view) return "no view: " + view.error().reason;
    const auto bytes = test::read_range(**view, 0, (*view)->size());
    if (!bytes) return "not read: " + bytes.error().reason;
    std::string text(bytes->begin(), bytes->end());
    const auto add = [&](const std::string& name, const auto& value) {
      text += "\n" + name + "=" + std::string(value.begin(), value.end());
    };
    const frame::FrameContainer& container = *(*opened)->as_frame();
    if (const auto title = container.vlmetalayer("title")) add(kTitle, *title);
    for (const frame::MetalayerPlace& place : container.metalayer_places()) {
      if (place.name == "fixed") add(kFixed, container.metalayer(place).value());
    }
    std::array<char, 16> other{};
    const auto length = ::getxattr(path.c_str(), kOther, other.data(), other.size());
    if (length > 0) add(kOther, std::string_view(other.data(), static_cast<std::size_t>(length)));
    return text;
  }
  View on_disk() const {
    View view;
    for (const std::string name : kNames) {
      const std::filesystem::path frame = directory_.path() / (name + ".b2frame");
      const std::filesystem::path array = (directory_.path() / name).replace_extension(".b2nd");
      if (name.ends_with(".npy") && std::filesystem::exists(array)) {
        view[name] = stored(array, frame::ArrayForm::npy);
      } else if (std::filesystem::exists(frame)) {
        view[name] = stored(frame, frame::ArrayForm::flat);
      }
    }
    return view;
  }
  std::string hidden_files() const {
    std::string names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      const std::string name = entry.path().filename();
      if (name.front() == '.') names += name + " ";
    }
    return names;
  }
  static std::ptrdiff_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  }

  const test::TempDir directory_{test::directory_for_many_files()};
};

TEST_P(FailingOperations, TheMountShowsAWholeStateAndTheDiskHoldsIt) {
  const auto& [operation, how] = GetParam();
  const std::vector<View> states = states_of(operation);
  int faults = 0;
  for (std::int64_t number = 1;; ++number) {
    make_source();
    const auto descriptors = open_descriptors();
    UnsyncedFiles unsynced(operation.has_flags);
    FailingFiles files(unsynced);
    files.count(how == FailingFiles::once ? FailingFiles::every : FailingFiles::changes);
    ProgramsMount mount(directory_.path(), files);
    for (const Step& step : operation.before)
      ASSERT_TRUE(step(mount));
    files.fail(number, how == FailingFiles::once ? EIO : ENOSPC, how);
    const auto failing = std::find_if(operation.steps.begin(), operation.steps.end(),
                                      [&](const Step& step) { return !step(mount).has_value(); });
    const bool is_done = failing == operation.steps.end();
    const auto failed = files.failed();
    files.stop();
    if (!failed) break;
    ++faults;
    SCOPED_TRACE("call " + std::to_string(number) + ", kind " + std::to_string(static_cast<int>(failed->kind)) + ", " +
                 failed->path + (is_done ? ": done" : ": failed"));
    const View shown = mount.view();
    if (is_done) {
      EXPECT_EQ(differences(shown, states.back()), "");
    } else if (operation.is_undone) {
      EXPECT_EQ(differences(shown, states.at(static_cast<std::size_t>(failing - operation.steps.begin()))), "");
    } else if (operation.is_whole) {
      EXPECT_NE(std::find(states.begin(), states.end(), shown), states.end())
          << "neither before:" << differences(shown, states.front())
          << " nor after:" << differences(shown, states.back());
    }
    mount.end();
    EXPECT_EQ(differences(on_disk(), shown), "");
    EXPECT_TRUE(failed->kind == test::FileCall::Kind::remove || hidden_files().empty()) << hidden_files();
    EXPECT_EQ(open_descriptors(), descriptors);
  }
  EXPECT_GT(faults, 3);
}

INSTANTIATE_TEST_SUITE_P(Faults, FailingOperations,
                         ::testing::Combine(::testing::ValuesIn(all_operations()),
                                            ::testing::Values(FailingFiles::once, FailingFiles::cut_short)),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param).name) +
                                  (std::get<1>(instance.param) == FailingFiles::once ? "" : "_cut_short");
                         });

}  // namespace
}  // namespace cframefs::fs
