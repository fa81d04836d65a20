// The outlines of the ten signs, drawn on a 24 x 24 grid and flattened to short pieces.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/data/glyphs/signs.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

namespace numemu::net::glyphs {
namespace {

constexpr std::int32_t kCentre = 12;     // of the 24 x 24 design grid
constexpr std::int32_t kPieceUnits = 3;  // longest piece of a flattened line, about two pixels
constexpr std::int32_t kCurvePieces = 6;

Point on_grid(Point p) { return {(p.x - kCentre) * kGridUnit, (p.y - kCentre) * kGridUnit}; }

/// Straight through the given grid points.
Polyline line(std::initializer_list<Point> corners) {
  Polyline out{on_grid(*corners.begin())};
  for (const Point* b = corners.begin() + 1; b != corners.end(); ++b) {
    const Point from = on_grid(b[-1]), to = on_grid(*b);
    const std::int32_t dx = to.x - from.x, dy = to.y - from.y;
    const std::int32_t longest = std::max(std::abs(dx), std::abs(dy)) / kGridUnit;
    const std::int32_t pieces = (longest + kPieceUnits - 1) / kPieceUnits;
    for (std::int32_t i = 1; i <= pieces; ++i) {
      out.push_back({from.x + dx * i / pieces, from.y + dy * i / pieces});
    }
  }
  return out;
}

/// Quadratic Bezier arcs: start, then pairs (control, end).
Polyline curve(std::initializer_list<Point> points) {
  constexpr std::int32_t n = kCurvePieces;
  Polyline out{on_grid(*points.begin())};
  for (const Point* q = points.begin() + 1; q + 1 < points.end(); q += 2) {
    const Point a = on_grid(q[-1]), b = on_grid(q[0]), c = on_grid(q[1]);
    for (std::int32_t i = 1; i <= n; ++i) {
      const std::int32_t u = n - i;
      out.push_back({(u * u * a.x + 2 * u * i * b.x + i * i * c.x) / (n * n),
                     (u * u * a.y + 2 * u * i * b.y + i * i * c.y) / (n * n)});
    }
  }
  return out;
}

std::array<Sign, kSigns> draw_signs() {
  const Polyline hook_stem = line({{7, 22}, {7, 8}});
  const Polyline hook_bow = curve({{7, 8}, {7, 2}, {13, 2}, {19, 2}, {19, 8}});
  const Polyline lens = curve({{2, 12}, {12, 1}, {22, 12}, {12, 23}, {2, 12}});
  return {{
      {"hook", {hook_stem, hook_bow}},
      {"barb", {hook_stem, hook_bow, line({{7, 14}, {14, 14}})}},
      {"gate", {line({{5, 22}, {5, 3}, {19, 3}, {19, 22}})}},
      {"arch",
       {line({{5, 22}, {5, 11}}), curve({{5, 11}, {5, 3}, {12, 3}, {19, 3}, {19, 11}}),
        line({{19, 11}, {19, 22}})}},
      {"flag", {line({{7, 2}, {7, 22}, {19, 18}, {7, 12}})}},
      {"sail", {line({{7, 2}, {7, 22}, {18, 9}, {7, 11}})}},
      {"eye", {lens, line({{10, 12}, {14, 12}})}},
      {"slit", {lens, line({{12, 9}, {12, 15}})}},
      {"maze", {line({{4, 21}, {4, 3}, {20, 3}, {20, 20}, {10, 20}, {10, 10}, {15, 10}})}},
      {"coil",
       {curve({{4, 21},
               {2, 3},
               {12, 3},
               {20, 3},
               {20, 12},
               {20, 20},
               {14, 20},
               {9, 20},
               {9, 14},
               {9, 10},
               {15, 10}})}},
  }};
}

}  // namespace

const std::array<Sign, kSigns>& signs() {
  static const std::array<Sign, kSigns> all = draw_signs();
  return all;
}

}  // namespace numemu::net::glyphs
