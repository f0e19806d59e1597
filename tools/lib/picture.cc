#include "tools/lib/picture.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <span>

#include <fmt/core.h>
#include <zlib.h>

#include "frame/base/utf8_sanitize.h"
#include "frame/base/xml_text.h"
#include "tools/lib/bitmap_font.h"

namespace cframefs::tools {
namespace {

/// Returns the text for XML, which has no place for control characters.
std::string svg_text(std::string_view text) {
  return frame::xml_text(frame::printable(text));
}

std::string hex_of(Color color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
}

std::span<const std::uint8_t> glyph_of(char c) {
  const char known = c >= kFirstGlyph && c <= kLastGlyph ? c : '?';
  return std::span(kGlyphs).subspan(static_cast<std::size_t>(known - kFirstGlyph) * kGlyphColumns, kGlyphColumns);
}

/// Returns the text with one question mark for each character beyond ASCII.
std::string ascii_of(std::string_view text) {
  std::string ascii;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte < 0x80) ascii += c;
    if (byte >= 0xc0) ascii += '?';  // the first byte of a character
  }
  return ascii;
}

/// The pixels of a picture, with the filter byte of PNG before each row.
class Pixels {
 public:
  Pixels(int width, int height, Color background)
      : width_(width), height_(height), bytes_(row_bytes() * static_cast<std::size_t>(height)) {
    fill(0, 0, width, height, background);
  }
  /// Clips what lies outside.
  void fill(int x, int y, int width, int height, Color color) {
    for (int row = std::max(y, 0); row < std::min(y + height, height_); ++row) {
      for (int column = std::max(x, 0); column < std::min(x + width, width_); ++column) {
        const std::size_t at = static_cast<std::size_t>(row) * row_bytes() + 1 + static_cast<std::size_t>(column) * 3;
        bytes_[at] = color.red;
        bytes_[at + 1] = color.green;
        bytes_[at + 2] = color.blue;
      }
    }
  }
  void draw(int x, int y, int size, Color color, char c) {
    const auto glyph = glyph_of(c);
    for (int column = 0; column < static_cast<int>(glyph.size()); ++column) {
      for (int row = 0; row < 8; ++row) {
        if ((glyph[static_cast<std::size_t>(column)] >> row & 1U) != 0)
          fill(x + column * size, y + row * size, size, size, color);
      }
    }
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::size_t row_bytes() const { return 1 + static_cast<std::size_t>(width_) * 3; }

  const int width_, height_;
  std::vector<std::uint8_t> bytes_;
};

using Bytes = std::vector<std::uint8_t>;

void add_big_endian(Bytes& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<std::uint8_t>(value >> static_cast<unsigned>(shift) & 0xffU));
}

/// Adds a chunk of PNG: length, type, data, check sum of type and data.
void add_png_chunk(Bytes& png, std::string_view type, const Bytes& data) {
  add_big_endian(png, static_cast<std::uint32_t>(data.size()));
  const std::size_t begin = png.size();
  png.insert(png.end(), type.begin(), type.end());
  png.insert(png.end(), data.begin(), data.end());
  const auto sum = crc32(0, png.data() + begin, static_cast<uInt>(png.size() - begin));
  add_big_endian(png, static_cast<std::uint32_t>(sum));
}

Bytes deflated(const Bytes& bytes) {
  uLongf length = compressBound(bytes.size());
  Bytes out(length);
  // The output has the size that compressBound() returns, so that only a lack of memory can fail the call.
  if (compress2(out.data(), &length, bytes.data(), bytes.size(), Z_BEST_COMPRESSION) != Z_OK) throw std::bad_alloc();
  out.resize(length);
  return out;
}

}  // namespace

void Picture::text(int x, int y, int size, Color color, std::string_view text) {
  if (!text.empty()) texts_.push_back({x, y, size, color, std::string(text)});
}

std::string Picture::svg() const {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"{2}\"/>\n",
      width_, height_, hex_of(background_));
  for (const Shape& shape : shapes_) {
    svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", shape.x, shape.y,
                       shape.width, shape.height, hex_of(shape.color));
  }
  for (const Text& text : texts_) {
    // A character of a font of fixed width is 0.6 of its size wide.
    svg +=
        fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\" xml:space=\"preserve\">{}</text>\n", text.x,
                    text.y + 7 * text.size, kAdvance * text.size * 10 / 6, hex_of(text.color), svg_text(text.text));
  }
  return svg + "</svg>\n";
}

std::vector<std::uint8_t> Picture::png() const {
  Pixels pixels(width_, height_, background_);
  for (const Shape& shape : shapes_)
    pixels.fill(shape.x, shape.y, shape.width, shape.height, shape.color);
  for (const Text& text : texts_) {
    int x = text.x;
    for (const char c : ascii_of(frame::printable(text.text))) {
      pixels.draw(x, text.y, text.size, text.color, c);
      x += kAdvance * text.size;
    }
  }
  Bytes header;
  add_big_endian(header, static_cast<std::uint32_t>(width_));
  add_big_endian(header, static_cast<std::uint32_t>(height_));
  header.insert(header.end(), {8, 2, 0, 0, 0});  // 8 bits each of red, green and blue
  Bytes png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  add_png_chunk(png, "IHDR", header);
  add_png_chunk(png, "IDAT", deflated(pixels.bytes()));
  add_png_chunk(png, "IEND", {});
  return png;
}

}  // namespace cframefs::tools
