// Metalayers of frames that have no data yet: the first write makes a new frame, which keeps them.
#include <string>

#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"

namespace cframefs::fs {
namespace {

constexpr const char* kNote = "user.blosc2.vlmeta.note";

class LayersOfEmptyFrames : public WrittenFilesystem {
 protected:
  void SetUp() override {
    // As the reference library makes one: the size of chunks follows from the first.
    test::FrameBuilder builder;
    builder.chunksize = -1;
    builder.typesize = 4;
    builder.metalayers.emplace_back("fixed", test::Bytes{1, 2, 3});
    directory_.write("f.b2frame", builder.build());
    WrittenFilesystem::SetUp();
  }
  NodeId node(const std::string& name) {
    auto found = filesystem_->names().lookup(kRootNode, name);
    EXPECT_TRUE(found) << found.error().reason;
    return found ? found->node : 0;
  }
  codec::Result<void> note(const std::string& name, const std::string& text) {
    return filesystem_->extended_attributes().set(node(name), kNote, text, 0);
  }
  std::string noted(const std::string& name) {
    const auto value = filesystem_->extended_attributes().get(node(name), kNote);
    EXPECT_TRUE(value) << value.error().reason;
    return value.value_or("");
  }
  void expect_written(const std::string& name, const std::string& text) {
    auto handle = open(name);
    ASSERT_TRUE(handle);
    ASSERT_TRUE(write(*handle, 0, text));
    EXPECT_TRUE(filesystem_->files().sync(*handle, true));
    EXPECT_TRUE(close(std::move(handle)));
    EXPECT_EQ(content(name), text);
  }
};

TEST_F(LayersOfEmptyFrames, OneThatIsSetBeforeTheDataStays) {
  ASSERT_TRUE(note("f", "first"));
  remount();
  EXPECT_EQ(noted("f"), "first");
  expect_written("f", std::string(10000, 'x'));
  EXPECT_EQ(noted("f"), "first");
  ASSERT_TRUE(note("f", "second"));
  remount();
  EXPECT_EQ(noted("f"), "second");
  EXPECT_EQ(content("f"), std::string(10000, 'x'));
  const auto value = filesystem_->extended_attributes().get(node("f"), "user.blosc2.meta.fixed");
  EXPECT_EQ(value.value(), std::string("\1\2\3"));
  EXPECT_EQ(stored("f.b2frame")->parameters().typesize, 4);
}

// semantics: X5
TEST_F(LayersOfEmptyFrames, OneThatIsSetWhileTheFileIsOpenStays) {
  for (const std::string name : {"f", "new"}) {
    auto handle = name == "f" ? open(name) : create(name);
    ASSERT_TRUE(handle);
    ASSERT_TRUE(note(name, "early"));
    ASSERT_TRUE(filesystem_->extended_attributes().set(node("f"), "user.blosc2.meta.fixed", "abc", 0));
    ASSERT_TRUE(write(*handle, 0, "text"));
    EXPECT_TRUE(filesystem_->files().sync(*handle, true));
    EXPECT_TRUE(close(std::move(handle)));
    EXPECT_EQ(noted(name), "early") << name;
    EXPECT_EQ(content(name), "text") << name;
  }
  EXPECT_EQ(filesystem_->extended_attributes().get(node("f"), "user.blosc2.meta.fixed").value(), "abc");
}

TEST_F(LayersOfEmptyFrames, ItCanBeRemovedBeforeTheDataComes) {
  ASSERT_TRUE(note("f", "gone"));
  remount();
  ASSERT_TRUE(filesystem_->extended_attributes().remove(node("f"), kNote));
  expect_written("f", "text");
  EXPECT_TRUE(stored("f.b2frame")->vlmetalayer_names().empty());
}

}  // namespace
}  // namespace cframefs::fs
