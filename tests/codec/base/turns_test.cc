#include "codec/base/turns.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::codec {
namespace {

void wait_until_waited_for(const Turns& turns) {
  while (!turns.is_waited_for())
    std::this_thread::yield();
}

TEST(Turns, LimitsConcurrentTurnsAndServesEveryThread) {
  Turns turns(3);
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  std::atomic<int> done{0};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const Turns::Turn turn = turns.take();
        const int here = ++now;
        int seen = most.load();
        while (here > seen && !most.compare_exchange_weak(seen, here)) {
        }
        // In round 0 hold the turn until the limit is reached.
        while (round == 0 && most.load() < 3 && std::chrono::steady_clock::now() < deadline)
          std::this_thread::yield();
        --now;
        ++done;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(most.load(), 3);
  EXPECT_EQ(done.load(), 8 * 200);
}

TEST(Turns, WaitingForAHeldTurnTimesOut) {
  Turns turns(1);
  const auto always = [] { return true; };
  Turns::Turn taken = turns.take_while_they_move(std::chrono::milliseconds(10), always);
  EXPECT_TRUE(taken);
  EXPECT_FALSE(turns.take_while_they_move(std::chrono::milliseconds(10), always));
  EXPECT_FALSE(turns.is_waited_for());
  taken = Turns::Turn();
  EXPECT_TRUE(turns.take_while_they_move(std::chrono::milliseconds(10), always));
}

TEST(Turns, WaitingContinuesWhileTurnsMove) {
  Turns turns(1);
  std::atomic<int> without{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      // All turns together take longer than the patience of each thread.
      const Turns::Turn turn = turns.take_while_they_move(std::chrono::seconds(1), [] { return true; });
      if (!turn) ++without;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(without.load(), 0);
}

TEST(Turns, AFreeTurnWakesOneThread) {
  // A waiting thread asks whether its turn is wanted only after it was woken.
  Turns turns(1, nullptr, std::chrono::hours(1));
  constexpr int kThreads = 32;
  std::atomic<int> arrived{0};
  std::atomic<int> woken{0};
  Turns::Turn taken = turns.take();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      ++arrived;
      const Turns::Turn turn = turns.take([&] {
        ++woken;
        return true;
      });
    });
  }
  while (arrived.load() < kThreads)
    std::this_thread::yield();
  // Most of them are in line now.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  taken = Turns::Turn();
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_LE(woken.load(), 2 * kThreads);
}

TEST(Turns, AnUnwantedTurnLeavesTheLine) {
  Turns turns(1);
  Turns::Turn taken = turns.take();
  EXPECT_FALSE(turns.take([] { return false; }));
  EXPECT_FALSE(turns.is_waited_for());
  // The next thread in line still gets its turn.
  std::atomic<bool> first_is_wanted{true};
  std::atomic<bool> second_has_turn{false};
  std::thread first([&] { EXPECT_FALSE(turns.take([&] { return first_is_wanted.load(); })); });
  wait_until_waited_for(turns);
  std::thread second([&] { second_has_turn = static_cast<bool>(turns.take()); });
  first_is_wanted = false;
  first.join();
  taken = Turns::Turn();
  second.join();
  EXPECT_TRUE(second_has_turn);
}

TEST(Turns, AFreeTurnGoesOnlyToAThreadThatWantsIt) {
  Turns turns(1);
  Turns::Turn taken = turns.take();
  std::atomic<bool> is_wanted{true};
  std::thread waiting([&] { EXPECT_FALSE(turns.take([&] { return is_wanted.load(); })); });
  wait_until_waited_for(turns);
  is_wanted = false;
  taken = Turns::Turn();
  waiting.join();
  EXPECT_TRUE(turns.take());
}

TEST(Turns, WithoutRoomOneTurnAtATime) {
  std::atomic<bool> has_room{false};
  Turns turns(3, [&] { return has_room.load(); });
  Turns::Turn first = turns.take();
  ASSERT_TRUE(first);
  std::atomic<bool> is_taken{false};
  std::thread second([&] {
    const Turns::Turn turn = turns.take();
    is_taken = static_cast<bool>(turn);
  });
  wait_until_waited_for(turns);
  EXPECT_FALSE(is_taken);
  has_room = true;
  second.join();
  EXPECT_TRUE(is_taken);
  has_room = false;
  first = Turns::Turn();
  EXPECT_TRUE(turns.take());
}

}  // namespace
}  // namespace cframefs::codec
