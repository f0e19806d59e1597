// Operations of programs whose parts may fail: of contents, attributes and names of frames of each kind. A test runs
// each of them with one fault after the other.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <sys/xattr.h>

#include "frame/cframe/frame_container.h"
#include "frame/open/open.h"
#include "tests/fs/programs_mount.h"
#include "tests/support/array_builder.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs::fs {

/// What numpy.save writes of 30 x 25 numbers of 4 bytes.
inline Bytes saved_array() {
  const std::string head = "{'descr': '<i4', 'fortran_order': False, 'shape': (30, 25), }";
  Bytes bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
  bytes.insert(bytes.end(), head.begin(), head.end());
  bytes.resize(127, ' ');
  bytes.push_back('\n');
  const Bytes items = stripes(3000, 9);
  bytes.insert(bytes.end(), items.begin(), items.end());
  return bytes;
}

struct ProgramOperation {
  const char* name;
  std::vector<Step> before;  // nothing fails there
  std::vector<Step> steps;
  bool has_flags = true;   // as UnsyncedFiles
  bool is_whole = true;    // it does not do a part
  bool is_undone = false;  // a step that fails changes nothing
};
using Operations = std::vector<ProgramOperation>;

inline void PrintTo(const ProgramOperation& operation, std::ostream* out) {
  *out << operation.name;
}

inline constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

// NOLINTBEGIN(clang-analyzer-cplusplus.NewDeleteLeaks): the lists destroy their steps; LeakSanitizer finds no leak
// x: chunks; y: empty; z: chunks, others; s, u: sparse; a.npy: an array; n: nothing.
inline Operations changes_of_content() {
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

inline Operations changes_of_attributes() {
  return {
      {"title_dirty", {dirties("x")}, {sets("x", kTitle, "text"), flushes("x")}},
      {"title_of_empty", {opens("y")}, {sets("y", kTitle, "text"), writes("y", 0, 9000, 4), flushes("y")}},
      {"fixed", {opens("x")}, {sets("x", kFixed, "abc")}},
      {"other", {dirties("x")}, {sets("x", kOther, "value"), flushes("x")}},
      {"title_sparse", {dirties("s")}, {sets("s", kTitle, "text"), flushes("s")}},
      {"title_array", {dirties("a.npy")}, {sets("a.npy", kTitle, "text"), flushes("a.npy")}},
  };
}

inline Operations changes_of_names() {
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

inline Operations changes_of_sparse_frames_and_arrays() {
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

// NOLINTEND(clang-analyzer-cplusplus.NewDeleteLeaks)

inline Operations all_operations() {
  Operations all;
  for (const auto& some : {changes_of_content(), changes_of_attributes(), changes_of_sparse_frames_and_arrays()})
    all.insert(all.end(), some.begin(), some.end());
  for (ProgramOperation names : changes_of_names()) {
    names.is_undone = true;
    all.push_back(names);
  }
  return all;
}

/// The files of the source, by their paths.
inline std::map<std::string, Bytes> source_files() {
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

/// A source with files of all kinds, and what a mount of it shows.
class OperationsTest : public ::testing::Test {
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
  std::vector<View> states_of(const ProgramOperation& operation) const {
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
  /// Checks what a mount shows after step number `failing` has failed; after all steps, if that is their count.
  static void check_shown(const ProgramOperation& operation, const std::vector<View>& states, std::size_t failing,
                          const View& shown) {
    if (failing == operation.steps.size()) {
      EXPECT_EQ(differences(shown, states.back()), "");
    } else if (operation.is_undone) {
      EXPECT_EQ(differences(shown, states.at(failing)), "");
    } else if (operation.is_whole) {
      EXPECT_NE(std::find(states.begin(), states.end(), shown), states.end())
          << "neither before:" << differences(shown, states.front())
          << " nor after:" << differences(shown, states.back());
    }
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

}  // namespace cframefs::fs
