#include "codec/filter/bytedelta.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/filter/bytedelta.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cframefs::codec::HWY_NAMESPACE {

// Replaces the bytes from `data` by their running sums, as many as fill whole vectors; returns how many.
#if HWY_TARGET == HWY_SCALAR

std::size_t vector_running_sum(std::uint8_t*, std::size_t) {
  return 0;
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// Returns the running sums of each block of 16 bytes.
template <class D>
HWY_INLINE hn::Vec<D> sums_of_blocks(D d, hn::Vec<D> bytes) {
  bytes = hn::Add(bytes, hn::ShiftLeftBytes<1>(d, bytes));
  bytes = hn::Add(bytes, hn::ShiftLeftBytes<2>(d, bytes));
  bytes = hn::Add(bytes, hn::ShiftLeftBytes<4>(d, bytes));
  return hn::Add(bytes, hn::ShiftLeftBytes<8>(d, bytes));
}

std::size_t vector_running_sum(std::uint8_t* data, std::size_t count) {
  constexpr std::size_t kLane = 16;
  const std::size_t whole = count / kLane * kLane;
  std::size_t i = 0;
  std::uint8_t before = 0;
#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE  // the length of scalable vectors is known only at run time
  // Two blocks per step. Only one addition of a step depends on the previous step.
  const hn::FixedTag<std::uint8_t, 2 * kLane> pair;
  auto last_pair = hn::Zero(pair);  // the sum so far, in every byte
  for (; whole - i >= 2 * kLane; i += 2 * kLane) {
    const auto sums = sums_of_blocks(pair, hn::LoadU(pair, data + i));
    const auto totals = hn::TableLookupBytes(sums, hn::Set(pair, kLane - 1));
    const auto lower = hn::ConcatLowerLower(pair, totals, hn::Zero(pair));  // for the upper block
    hn::StoreU(hn::Add(hn::Add(sums, lower), last_pair), pair, data + i);
    last_pair = hn::Add(last_pair, hn::Add(totals, hn::ConcatLowerUpper(pair, totals, totals)));
  }
  if (i > 0) before = data[i - 1];
#endif
  const hn::FixedTag<std::uint8_t, kLane> d;
  auto last = hn::Set(d, before);
  for (; i < whole; i += kLane) {
    const auto sums = sums_of_blocks(d, hn::LoadU(d, data + i));
    hn::StoreU(hn::Add(sums, last), d, data + i);
    last = hn::Add(last, hn::TableLookupBytes(sums, hn::Set(d, kLane - 1)));
  }
  return whole;
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace cframefs::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cframefs::codec {

HWY_EXPORT(vector_running_sum);

namespace {

void running_sum(std::uint8_t sum, ByteSpan bytes) {
  for (std::uint8_t& byte : bytes) {
    sum = static_cast<std::uint8_t>(sum + byte);
    byte = sum;
  }
}

}  // namespace

void bytedelta(std::size_t planes, ByteView in, ByteSpan out) {
  const std::size_t length = in.size() / planes;
  for (std::size_t plane = 0; plane < planes && length > 0; ++plane) {
    const std::uint8_t* const from = in.data() + plane * length;
    std::uint8_t* const to = out.data() + plane * length;
    to[0] = from[0];
    for (std::size_t i = 1; i < length; ++i)
      to[i] = static_cast<std::uint8_t>(from[i] - from[i - 1]);
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(planes * length), in.end(), out.data() + planes * length);
}

void undo_bytedelta(std::size_t planes, BytedeltaKind kind, ByteSpan block) {
  const std::size_t length = block.size() / planes;
  const std::size_t restart = length / 16 * 16;
  const auto vector_sum = HWY_DYNAMIC_DISPATCH(vector_running_sum);
  // The number of planes may be the item size that a frame claims, up to 2^31: do not iterate over empty planes.
  for (std::size_t plane = 0; plane < planes && length > 0; ++plane) {
    const ByteSpan bytes = block.subspan(plane * length, length);
    std::size_t done = vector_sum(bytes.data(), length);
    if (kind == BytedeltaKind::restarted) {
      if (done < restart) running_sum(0, bytes.first(restart));
      running_sum(0, bytes.subspan(restart));
    } else {
      running_sum(done == 0 ? 0 : bytes[done - 1], bytes.subspan(done));
    }
  }
}

namespace plain {

void undo_bytedelta(std::size_t planes, BytedeltaKind kind, ByteSpan block) {
  const std::size_t length = block.size() / planes;
  const std::size_t restart = kind == BytedeltaKind::restarted ? length / 16 * 16 : length;
  for (std::size_t plane = 0; plane < planes && length > 0; ++plane) {
    const ByteSpan bytes = block.subspan(plane * length, length);
    running_sum(0, bytes.first(restart));
    running_sum(0, bytes.subspan(restart));
  }
}

}  // namespace plain
}  // namespace cframefs::codec
#endif  // HWY_ONCE
