// A picture of rectangles and lines of text, written as SVG or PNG.
//
// Both look alike: text has a fixed width, 6 units a character at size 1. The PNG has no fonts to rely on and uses
// bitmap_font.h; characters beyond ASCII become question marks there. Thread safety: one thread per object. Units:
// pixels; text is placed by its upper left corner. Errors: none;
// std::bad_alloc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cframefs::tools {

struct Color {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};

class Picture {
 public:
  /// Width of a character and height of a line of text of size 1.
  static constexpr int kAdvance = 6;
  static constexpr int kLine = 10;

  Picture(int width, int height, Color background) : width_(width), height_(height), background_(background) {}

  void rectangle(int x, int y, int width, int height, Color color) { shapes_.push_back({x, y, width, height, color}); }
  /// `size`: 1 or more; the characters are 7 * size pixels high.
  void text(int x, int y, int size, Color color, std::string_view text);

  std::string svg() const;
  std::vector<std::uint8_t> png() const;

 private:
  struct Shape {
    int x, y, width, height;
    Color color;
  };
  struct Text {
    int x, y, size;
    Color color;
    std::string text;
  };

  const int width_, height_;
  const Color background_;
  std::vector<Shape> shapes_;
  std::vector<Text> texts_;  // above the shapes
};

}  // namespace cframefs::tools
