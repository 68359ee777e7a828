// Problems for the placement tests, and a check and an optimum that are slow but plain.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "passes/placement/Problem.h"

namespace gpuc::placement {

inline Buffer buffer(std::string id, int64_t lower, int64_t upper, int64_t size, int64_t alignment = 1) {
  return {std::move(id), lower, upper, size, alignment};
}

struct RandomShape {
  size_t buffers = 40;
  int64_t times = 50;
  int64_t max_size = 100;
  bool alignments = true;
  size_t conflicts = 10;
};

/// A problem of at most `shape.buffers` buffers; the same for the same seed.
inline Problem randomProblem(uint64_t seed, const RandomShape& shape) {
  std::mt19937_64 random(seed);
  auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
  Problem problem;
  size_t count = static_cast<size_t>(below(static_cast<int64_t>(shape.buffers) + 1));
  for (size_t i = 0; i < count; ++i) {
    int64_t lower = below(shape.times);
    int64_t upper = lower + 1 + below(shape.times / 2);
    int64_t size = below(10) == 0 ? 0 : 1 + below(shape.max_size);
    int64_t alignment = shape.alignments ? int64_t{1} << below(5) : 1;
    problem.buffers.push_back(buffer("b" + std::to_string(i), lower, upper, size, alignment));
  }
  for (size_t k = 0; k < shape.conflicts && count >= 2; ++k) {
    size_t a = static_cast<size_t>(below(static_cast<int64_t>(count)));
    size_t b = static_cast<size_t>(below(static_cast<int64_t>(count)));
    if (a != b) problem.conflicts.emplace_back(a, b);
  }
  return problem;
}

/// The buffers of a training step through `layers` layers: an activation that lives from its forward to its
/// backward command, and in both directions what is passed on to the next one.
inline Problem trainingStep(int64_t layers, uint64_t seed) {
  std::mt19937_64 random(seed);
  Problem problem;
  auto size = [&] { return static_cast<int64_t>(1 + random() % 64) * 4096; };
  for (int64_t i = 0; i < layers; ++i) {
    std::string name = "layer" + std::to_string(i);
    problem.buffers.push_back(buffer(name + ".kept", i, 2 * layers - i, size(), 64));
    problem.buffers.push_back(buffer(name + ".out", i, i + 2, size(), 64));
    problem.buffers.push_back(buffer(name + ".gradient", 2 * layers - i, 2 * layers - i + 2, size(), 64));
    problem.buffers.push_back(buffer(name + ".workspace", 2 * layers - i, 2 * layers - i + 1, size(), 64));
  }
  return problem;
}

struct TilingShape {
  size_t buffers = 24;
  int64_t times = 1000;
  int64_t bytes = 1000;
  bool balanced = false;  // the largest piece is cut next, far from its edges; otherwise any piece anywhere
};

/// A rectangle of time × memory cut from edge to edge again and again, so that all bytes are live at every
/// time: the bound is the rectangle's height, and putting the pieces back together is the one way known to
/// reach it. In no order that tells where they lay.
inline Problem tiling(uint64_t seed, const TilingShape& shape) {
  struct Rectangle {
    int64_t lower, upper, begin, end;
  };
  std::mt19937_64 random(seed);
  auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
  auto area = [&](const Rectangle& r) { return (r.upper - r.lower) * (r.end - r.begin); };
  std::vector<Rectangle> pieces = {{0, shape.times, 0, shape.bytes}};
  while (pieces.size() < shape.buffers) {
    auto largest =
        std::max_element(pieces.begin(), pieces.end(),
                         [&](const Rectangle& a, const Rectangle& b) { return area(a) < area(b); });
    Rectangle& piece =
        shape.balanced ? *largest : pieces[static_cast<size_t>(below(static_cast<int64_t>(pieces.size())))];
    const bool in_time = below(2) == 0;
    const int64_t extent = in_time ? piece.upper - piece.lower : piece.end - piece.begin;
    if (extent < 4) continue;
    const int64_t cut =
        shape.balanced ? extent / 4 + below(extent / 2) + (extent < 8 ? 1 : 0) : 1 + below(extent - 1);
    Rectangle rest = piece;
    if (in_time)
      rest.lower = piece.upper = piece.lower + cut;
    else
      rest.begin = piece.end = piece.begin + cut;
    pieces.push_back(rest);
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  Problem problem;
  for (const Rectangle& r : pieces)
    problem.buffers.push_back(
        buffer("b" + std::to_string(problem.buffers.size()), r.lower, r.upper, r.end - r.begin));
  return problem;
}

inline bool conflict(const Problem& problem, size_t a, size_t b) {
  for (auto [x, y] : problem.conflicts)
    if ((x == a && y == b) || (x == b && y == a)) return true;
  return problem.buffers[a].lower < problem.buffers[b].upper &&
         problem.buffers[b].lower < problem.buffers[a].upper;
}

/// The validator's question asked of every pair.
inline bool isValid(const Problem& problem, const Solution& solution) {
  int64_t height = 0;
  auto end = [&](size_t i) { return solution.offsets[i] + occupiedBytes(problem.buffers[i]); };
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (solution.offsets[i] < 0 || solution.offsets[i] % problem.buffers[i].alignment != 0) return false;
    if (problem.buffers[i].size > 0) height = std::max(height, end(i));
    for (size_t j = 0; j < i; ++j) {
      bool shares = problem.buffers[i].size > 0 && problem.buffers[j].size > 0 &&
                    solution.offsets[i] < end(j) && solution.offsets[j] < end(i);
      if (shares && conflict(problem, i, j)) return false;
    }
  }
  return height == solution.height && height <= problem.capacity.value_or(height);
}

/// The least height of all placements: the buffers piled up in every order, each upon all that are in
/// conflict with it.
inline int64_t bruteForceHeight(const Problem& problem) {
  std::vector<size_t> order;
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].size > 0) order.push_back(i);
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> ends(problem.buffers.size(), 0);
    int64_t height = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const Buffer& current = problem.buffers[order[k]];
      int64_t offset = 0;
      for (size_t below = 0; below < k; ++below)
        if (conflict(problem, order[k], order[below])) offset = std::max(offset, ends[order[below]]);
      offset = (offset + current.alignment - 1) / current.alignment * current.alignment;
      ends[order[k]] = offset + occupiedBytes(current);
      height = std::max(height, ends[order[k]]);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

}  // namespace gpuc::placement
