#include "tests/frame/io/file_ops_contract.h"

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include <fcntl.h>

#include "frame/store/store_files.h"
#include "tests/crash/simulated_disk.h"
#include "tests/support/array_builder.h"
#include "tests/support/failing_files.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/limited_files.h"
#include "tests/support/remote_files.h"
#include "tests/support/zip_builder.h"

namespace cframefs::test {

using frame::Descriptor;
using frame::FileOps;
using frame::FileVersion;
using frame::OpenFile;
using frame::StoreFiles;

Bytes content_of_file() {
  return plain_frame(varied_items(3000), 700).build();
}
Bytes content_of_other() {
  return plain_frame(varied_items(900), 400).build();
}

namespace {

/// Opens the directory `path` beneath the temporary directory.
void open_root(Tree& tree, FileOps& files, const std::string& path) {
  tree.files = &files;
  const auto top = files.open_named(tree.temp.path().string(), O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(top) << codec::describe(top.error());
  const Descriptor opened(files, *top);
  const auto root = files.open_at(opened.handle(), path, O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(root) << codec::describe(root.error());
  tree.root = Descriptor(files, *root);
}

void fill(const Tree& tree) {
  std::filesystem::create_directory(tree.temp.path() / "inside");
  tree.temp.write("secret", Bytes{'s'});
  tree.temp.write("inside/" + kFile, content_of_file());
  tree.temp.write("inside/" + kOther, content_of_other());
}

template <FileOps& (*Files)()>
std::unique_ptr<Tree> existing() {
  auto tree = std::make_unique<Tree>();
  fill(*tree);
  open_root(*tree, Files(), "inside");
  return tree;
}

template <class Files>
std::unique_ptr<Tree> own() {
  auto tree = std::make_unique<Tree>();
  fill(*tree);
  tree->owned = std::make_unique<Files>();
  open_root(*tree, *tree->owned, "inside");
  return tree;
}

/// Stores are shown beside the directory, not in it.
std::unique_ptr<Tree> beside_stores() {
  auto tree = std::make_unique<Tree>();
  fill(*tree);
  tree->owned = std::make_unique<StoreFiles>(frame::system_files());
  open_root(*tree, *tree->owned, "inside");
  return tree;
}

/// One file is a member, the other one embedded.
std::unique_ptr<Tree> zip_store() {
  auto tree = std::make_unique<Tree>();
  tree->temp.write("secret", Bytes{'s'});
  tree->temp.write(
      "s.b2z", zip_file({{kFile, content_of_file()}, {"embed.b2e", embed_frame({{"/other", content_of_other()}})}}));
  tree->owned = std::make_unique<StoreFiles>(frame::system_files());
  open_root(*tree, *tree->owned, "s.b2z");
  return tree;
}

/// One file is on disk, the other one embedded.
std::unique_ptr<Tree> directory_store() {
  auto tree = std::make_unique<Tree>();
  tree->temp.write("secret", Bytes{'s'});
  std::filesystem::create_directory(tree->temp.path() / "d.b2d");
  tree->temp.write("d.b2d/" + kFile, content_of_file());
  tree->temp.write("d.b2d/embed.b2e", embed_frame({{"/other", content_of_other()}}));
  tree->owned = std::make_unique<StoreFiles>(frame::system_files());
  open_root(*tree, *tree->owned, "d.b2d");
  return tree;
}

/// A tree that is not on disk.
std::unique_ptr<Tree> opened(std::unique_ptr<FileOps> files, OpenFile directory) {
  auto tree = std::make_unique<Tree>();
  const auto root = files->open_at(directory, ".", O_RDONLY | O_DIRECTORY);
  EXPECT_TRUE(root);
  tree->files = files.get();
  tree->root = Descriptor(*files, root.value_or(OpenFile{}));
  tree->owned = std::move(files);
  return tree;
}

std::unique_ptr<Tree> simulated_disk() {
  return opened(std::make_unique<SimulatedDisk>(DiskImage{{kFile, content_of_file()}, {kOther, content_of_other()}}),
                SimulatedDisk::kDirectory);
}

std::unique_ptr<Tree> remote() {
  auto files = std::make_unique<RemoteFiles>();
  files->put(kFile, content_of_file(), "1");
  files->put(kOther, content_of_other(), "2");
  return opened(std::move(files), RemoteFiles::kDirectory);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Implementation& implementation) {
  return out << implementation.name;
}

const std::vector<Implementation>& on_disk() {
  static const std::vector<Implementation> implementations = {{"system", existing<frame::system_files>},
                                                              {"portable", existing<frame::portable_files>},
                                                              {"forwarding", own<ForwardingFiles>},
                                                              {"failing", own<FailingFiles>},
                                                              {"limited", own<LimitedFiles>},
                                                              {"beside_stores", beside_stores}};
  return implementations;
}

std::vector<Implementation> changing() {
  auto implementations = on_disk();
  implementations.push_back({"simulated_disk", simulated_disk});
  return implementations;
}

const std::vector<Implementation>& read_only() {
  static const std::vector<Implementation> implementations = {
      {"zip_store", zip_store}, {"directory_store", directory_store}, {"remote", remote}};
  return implementations;
}

std::vector<Implementation> all() {
  auto implementations = changing();
  implementations.insert(implementations.end(), read_only().begin(), read_only().end());
  return implementations;
}

Bytes FileOpsContract::content(frame::OpenFile file, std::uint64_t at, std::size_t most) {
  Bytes bytes(most);
  const auto got = files_.pread(file, bytes, frame::FileOffset{at});
  EXPECT_TRUE(got) << codec::describe(got.error());
  bytes.resize(got.value_or(0));
  return bytes;
}

std::multiset<std::string> FileOpsContract::names() {
  std::multiset<std::string> names;
  const auto entries = files_.list(dir());
  EXPECT_TRUE(entries) << codec::describe(entries.error());
  if (!entries) return names;
  for (const frame::DirectoryEntry& entry : *entries)
    names.insert(entry.name);
  return names;
}

frame::FileVersion FileOpsContract::settled(frame::OpenFile file) {
  for (int tries = 0; tries < 500; ++tries) {
    const auto version = files_.version(file);
    EXPECT_TRUE(version);
    if (!version || !version->racy) return version.value_or(frame::FileVersion{});
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << "the version does not settle";
  return {};
}

}  // namespace cframefs::test
