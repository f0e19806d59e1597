// Views of bytes, byte vectors that are not cleared when they grow, and endian and unaligned access: the only place
// where bytes become integers.
//
// The helpers do not check bounds: the caller has checked that the bytes exist.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace cframefs::codec {

using ByteView = std::span<const std::uint8_t>;
using ByteSpan = std::span<std::uint8_t>;

/// Default-initialises new elements, so that bytes that are about to be overwritten are not cleared first.
template <class T>
struct UninitializedAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };
  template <class U, class... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    if constexpr (sizeof...(Arguments) == 0) {
      ::new (static_cast<void*>(at)) U;
    } else {
      ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
    }
  }
};
/// A byte vector whose resize() adds bytes of unspecified content.
using UninitializedBytes = std::vector<std::uint8_t, UninitializedAllocator<std::uint8_t>>;

template <std::integral T>
constexpr T swap_bytes(T value) {
  if constexpr (sizeof(T) == 1) {
    return value;
  } else if constexpr (sizeof(T) == 2) {
    return static_cast<T>(__builtin_bswap16(static_cast<std::uint16_t>(value)));
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<T>(__builtin_bswap32(static_cast<std::uint32_t>(value)));
  } else {
    return static_cast<T>(__builtin_bswap64(static_cast<std::uint64_t>(value)));
  }
}

template <std::integral T>
T load_le(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return std::endian::native == std::endian::little ? value : swap_bytes(value);
}

template <std::integral T>
T load_be(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return std::endian::native == std::endian::big ? value : swap_bytes(value);
}

template <std::integral T>
void store_le(std::uint8_t* at, T value) {
  if (std::endian::native != std::endian::little) value = swap_bytes(value);
  std::memcpy(at, &value, sizeof value);
}

template <std::integral T>
void store_be(std::uint8_t* at, T value) {
  if (std::endian::native != std::endian::big) value = swap_bytes(value);
  std::memcpy(at, &value, sizeof value);
}

inline void append(std::vector<std::uint8_t>& to, ByteView bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Returns the memory of `values`, for stored bytes to be read into; see from_little_endian().
template <std::integral T>
ByteSpan bytes_of(std::span<T> values) {
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.size_bytes()};
}

/// Converts integers whose memory holds little-endian bytes to the byte order of the machine.
template <std::integral T>
void from_little_endian(std::span<T> values) {
  if constexpr (std::endian::native == std::endian::big) {
    for (T& value : values)
      value = swap_bytes(value);
  }
}

/// Converts numbers of `size` bytes between little-endian byte order and that of the machine. REQUIRES: `bytes` holds
/// whole ones.
inline void swap_if_big_endian(ByteSpan bytes, std::size_t size) {
  if constexpr (std::endian::native == std::endian::big) {
    for (; !bytes.empty(); bytes = bytes.subspan(size))
      std::reverse(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  }
}

}  // namespace cframefs::codec
