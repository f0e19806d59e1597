#include "codec/stream/decode_context.h"

#include <thread>

#include <gtest/gtest.h>

namespace cframefs {
namespace {

using codec::ContextPool;
using codec::DecodeContext;
using Slot = DecodeContext::Slot;

TEST(DecodeContext, ScratchIsReusedAndGrows) {
  DecodeContext context;
  const codec::ByteSpan first = context.scratch(Slot::streams, 1000);
  ASSERT_GE(first.size(), 1000u);
  EXPECT_EQ(context.scratch(Slot::streams, 500).data(), first.data());
  const codec::ByteSpan larger = context.scratch(Slot::streams, std::size_t{1} << 20);
  ASSERT_GE(larger.size(), std::size_t{1} << 20);
  larger.back() = 1;
}

TEST(DecodeContext, SlotsAreIndependent) {
  DecodeContext context;
  std::uint8_t value = 0;
  std::vector<codec::ByteSpan> spans;
  for (const Slot slot : {Slot::stored, Slot::streams, Slot::partial, Slot::reference}) {
    spans.push_back(context.scratch(slot, 64));
    std::fill(spans.back().begin(), spans.back().end(), ++value);
  }
  for (std::size_t i = 0; i < spans.size(); ++i)
    EXPECT_EQ(spans[i][63], i + 1);
}

TEST(DecodeContext, TrimFreesOnlyLargeSlots) {
  DecodeContext context;
  context.scratch(Slot::streams, 10 << 20);
  const std::uint8_t* const small = context.scratch(Slot::partial, 1000).data();
  context.trim(1 << 20);
  EXPECT_LT(context.scratch(Slot::streams, 1).size(), std::size_t{10} << 20);
  EXPECT_EQ(context.scratch(Slot::partial, 1000).data(), small);
}

TEST(ContextPool, ReusesReturnedContexts) {
  ContextPool pool;
  const DecodeContext* first = nullptr;
  {
    const ContextPool::PooledPtr lease = pool.acquire();
    first = &*lease;
    const ContextPool::PooledPtr other = pool.acquire();
    EXPECT_NE(&*other, first);
  }
  const ContextPool::PooledPtr one = pool.acquire();
  const ContextPool::PooledPtr two = pool.acquire();
  EXPECT_TRUE(&*one == first || &*two == first);
}

TEST(ContextPool, TrimsIdleContexts) {
  ContextPool pool(1 << 20);
  pool.acquire()->scratch(Slot::streams, 8 << 20);
  EXPECT_LT(pool.acquire()->scratch(Slot::streams, 1).size(), std::size_t{8} << 20);
}

TEST(ContextPool, ServesManyThreads) {
  ContextPool pool;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&pool, i] {
      for (int round = 0; round < 500; ++round) {
        const ContextPool::PooledPtr lease = pool.acquire();
        const codec::ByteSpan bytes = lease->scratch(Slot::partial, 256);
        bytes[0] = static_cast<std::uint8_t>(i);
        std::this_thread::yield();
        EXPECT_EQ(bytes[0], i);  // no other thread uses the context
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace
}  // namespace cframefs
