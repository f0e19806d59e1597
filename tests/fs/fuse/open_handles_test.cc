#include "fs/fuse/open_handles.h"

#include <memory>
#include <utility>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

TEST(OpenHandles, OneIsGivenBackWhenItIsReleased) {
  OpenHandles<int> handles;
  int* const held = handles.add(std::make_unique<int>(7));
  const auto back = handles.remove(held);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, 7);
  EXPECT_FALSE(handles.remove(held));
}

TEST(OpenHandles, OneThatIsKeptOutlivesItsRelease) {
  OpenHandles<int> handles;
  int* const held = handles.add(std::make_unique<int>(7));
  handles.keep(held);
  handles.keep(held);
  EXPECT_FALSE(handles.remove(held));
  EXPECT_FALSE(handles.let_go(held));
  EXPECT_EQ(*held, 7);
  const auto back = handles.let_go(held);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, 7);
}

TEST(OpenHandles, OneThatWasKeptIsReleasedAsEver) {
  OpenHandles<int> handles;
  int* const held = handles.add(std::make_unique<int>(7));
  handles.keep(held);
  EXPECT_FALSE(handles.let_go(held));
  EXPECT_FALSE(handles.let_go(held)) << "more often than it was kept";
  EXPECT_TRUE(handles.remove(held));
}

TEST(OpenHandles, WhatIsNoHandleIsLeftAlone) {
  OpenHandles<int> handles;
  int other = 0;
  handles.keep(&other);
  EXPECT_FALSE(handles.let_go(&other));
  EXPECT_FALSE(handles.let_go(nullptr));
}

}  // namespace
}  // namespace cframefs::fs
