#include "codec/bytedelta.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/bytedelta.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cframefs::codec {
namespace HWY_NAMESPACE {

// Running sums of the bytes from `data` on, in place, as many as fill whole vectors; returns how many.
#if HWY_TARGET == HWY_SCALAR

std::size_t vector_running_sum(std::uint8_t*, std::size_t) {
  return 0;
}

#else

std::size_t vector_running_sum(std::uint8_t* data, std::size_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<std::uint8_t, 16> d;
  const auto last_place = hn::Set(d, 15);
  auto last = hn::Zero(d);  // the sum so far, in every byte
  const std::size_t whole = count / 16 * 16;
  for (std::size_t i = 0; i < whole; i += 16) {
    auto sums = hn::LoadU(d, data + i);
    sums = hn::Add(sums, hn::ShiftLeftBytes<1>(d, sums));
    sums = hn::Add(sums, hn::ShiftLeftBytes<2>(d, sums));
    sums = hn::Add(sums, hn::ShiftLeftBytes<4>(d, sums));
    sums = hn::Add(sums, hn::ShiftLeftBytes<8>(d, sums));
    hn::StoreU(hn::Add(sums, last), d, data + i);
    last = hn::Add(last, hn::TableLookupBytes(sums, last_place));
  }
  return whole;
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace cframefs::codec
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
  // The number of planes may be the itemsize that a frame claims, up to 2^31: where they are empty nothing is to be
  // done.
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
