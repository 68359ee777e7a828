#include "runtime/workspace/matmul_plan.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <utility>

namespace gpuc {
namespace {

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t roundUp(int64_t a, int64_t multiple) { return ceilDivide(a, multiple) * multiple; }

/// The size of the parts when `total` is cut into as few as possible, of nearly equal size: at most `most`,
/// which is a multiple of `multiple`, as the parts are (unless there is but one).
int64_t evenPart(int64_t total, int64_t most, int64_t multiple) {
  if (total <= most) return total;
  return roundUp(ceilDivide(total, ceilDivide(total, most)), multiple);
}

/// Rows this far apart or more share few cache sets and no page.
constexpr int64_t kFarApartBytes = 6 * 1024;

constexpr int64_t kCacheLineBytes = 64;
constexpr int64_t kPageBytes = 4096;

int64_t rowBytesOfB(const MatmulPlan& plan) { return plan.ldb * sizeOf(plan.problem.type); }

/// Estimates a tile's time: bound by arithmetic (160 GFLOP/s in f32, 80 in f64) or by reading b
/// from the second-level cache, whichever is slower; 20 ns at least for the call.
double tileNs(const MatmulPlan& plan) {
  constexpr double kReadBytesPerNs = 100;
  const MatmulShape& p = plan.problem;
  const double element_bytes = static_cast<double>(sizeOf(p.type));
  const double columns = static_cast<double>(std::min(plan.tile_n, p.n)) * static_cast<double>(p.k);
  const double arithmetic_ns =
      columns * static_cast<double>(std::min(plan.tile_m, p.m)) * element_bytes / 320;
  return std::max({arithmetic_ns, columns * element_bytes / kReadBytesPerNs, 20.0});
}

/// LIBXSMM adds up at most this many products at once, if there are no more; else four by four (in its
/// kernels for AVX-512, where c is one vector wide; otherwise one by one).
constexpr int64_t kAddedAtOnce = 23;

/// Whether a micro-kernel of so many columns adds up all of them one by one. It takes four vectors at a time
/// and then what is left: if that is one vector, in as many sums side by side as there are few rows.
bool addsOneByOne(int64_t columns, int64_t lanes) {
  const int64_t left = columns % (4 * lanes);
  return left == 0 || left > lanes;
}

/// A plan whose tiles and blocks are chosen. For 16-bit operands it packs both, cut along k so that they fit,
/// which must not change the sums. A tile then takes up to `most_panels`, as what is packed of a serves them
/// all.
MatmulPlan finished(MatmulPlan plan, int64_t piece_k, int64_t most_panels) {
  const MatmulShape& p = plan.problem;
  if (plan.isWidened()) {
    plan.piece_k = piece_k;
    plan.pack_a = plan.pack_b = true;
    const int64_t others = p.batch * plan.rowTiles(), all_panels = ceilDivide(p.n, plan.panel_n);
    int64_t panels = std::min(most_panels, all_panels);
    while (panels > 1 && others * ceilDivide(all_panels, panels) < 16) --panels;
    plan.tile_n = std::max(plan.tile_n, plan.panel_n * panels);
  }
  plan.tile_ns = tileNs(plan);
  return plan;
}

/// Whether to multiply rows by rows instead of transposing b, which costs as much as 8 to 20 rows of a times
/// b.
bool prefersDot(const MatmulShape& p) {
  // 4 columns leave three quarters of a micro-kernel's vectors empty, 10 still a third (64 x 10 x 128: 1.6
  // us, packing b 1.8; 256 rows: 6.3 and 6.2).
  if (p.n <= 4 || (p.n <= 16 && p.m <= 64)) return true;
  // Long rows on whole cache lines run at 150 GFLOP/s (24 x 128 x 784: 31 us against 35), others at 100 (4.7
  // against 4.2 us for 16 x 128 x 128).
  const bool fast_rows = p.k >= 512 && p.k * sizeOf(p.type) % kCacheLineBytes == 0;
  return p.m <= (fast_rows ? 24 : 12);
}

/// Whether to transpose a instead of b: it is smaller, and its rows fill the vectors.
bool prefersTransposed(const MatmulShape& p) {
  // 16 x 256 x 64: 3.7 us instead of 4.4; 32 x 768 x 768: 235 instead of 300; but 24 x 256 x 64: 6.7 instead
  // of 5.3.
  constexpr int64_t kLanes = 16;
  return p.m <= 2 * kLanes && p.m % kLanes == 0 && p.n >= 64;
}

constexpr int64_t kNarrowPanel = 32;

/// Whether few rows do better by 32 columns than by 64. LIBXSMM's kernels for AVX-512 pass 6 rows of 64
/// columns at a time or 14 of 32, so of 8 rows 2 are left: 8 x 256 x 64 takes 1.23 us instead of 1.45, 8 x 64
/// x 256 1.16 instead of 1.39, b in the second-level cache; 7, 9, 10, 13 and 14 rows 4 to 13% less, 11, 12
/// and up to 6 none.
bool prefersNarrowPanels(const MatmulShape& p) {
  constexpr int64_t kMostWeightBytes = 256 * 1024;
  const bool leaves_few = p.m > 6 && p.m <= 14 && (p.m - 1) % 6 < 4;
  return leaves_few && p.type == DataType::f32 && p.n % kNarrowPanel == 0 &&
         p.n * p.k * sizeOf(p.type) <= kMostWeightBytes;
}

constexpr int64_t kDownwardSide = 64;

/// Whether to walk down both operands, as a weight's gradient of few columns does best: 512 x 128 x 768 takes
/// 562 us instead of 648 with narrower panels of a packed b, 384 x 128 x 768 410 instead of 455, 512 x 128 x
/// 64 41.7 instead of 44.7. Beyond 256 columns there is no difference. At least four tiles are left to share.
bool prefersDownward(const MatmulPlan& plan) {
  const MatmulShape& p = plan.problem;
  const int64_t tiles = ceilDivide(p.m, kDownwardSide) * ceilDivide(p.n, kDownwardSide);
  return p.type == DataType::f32 && p.transpose_a && !p.transpose_b && p.n >= kDownwardSide && p.n <= 256 &&
         p.batch * tiles >= 4;
}

}  // namespace

bool MatmulPlan::addsInOrder() const {
  return method == MatmulMethod::tiled && !swapped && addsInOrder(panel_n) &&
         addsInOrder(problem.n % panel_n);
}

bool MatmulPlan::addsInOrder(int64_t columns) const {
  return addsOneByOne(columns, kMatmulPackBytes / sizeOf(problem.type));
}

bool MatmulPlan::addsFewTerms() const {
  return problem.accumulate && method == MatmulMethod::tiled && !transposed && !pack_a && !pack_b &&
         problem.k <= block_k;
}

MatmulDepth MatmulPlan::depthAt(int64_t k) const {
  const int64_t begin = k / block_k * block_k;
  const int64_t length = std::min(block_k, problem.k - begin);
  const int64_t rest = begin + length - k;
  // What is left of a block stays longer than kAddedAtOnce, and begins at a multiple of four: so it is added
  // up as it is without pieces.
  if (piece_k > 0 && rest > piece_k + kAddedAtOnce) return {MatmulDepth::piece, piece_k};
  return {length < block_k ? MatmulDepth::cut : MatmulDepth::whole, rest};
}

int64_t MatmulPlan::lengthOf(MatmulDepth::Kind kind) const {
  if (kind == MatmulDepth::piece) return block_k > packedDepth() ? piece_k : 0;
  int64_t length = kind == MatmulDepth::whole ? block_k : problem.k % block_k;
  while (piece_k > 0 && length > piece_k + kAddedAtOnce) length -= piece_k;
  return length;
}

int64_t MatmulPlan::packedDepth() const {
  return piece_k > 0 ? std::min(block_k, piece_k + kAddedAtOnce) : block_k;
}

Status checkMatmulShape(const MatmulShape& s) {
  if (!isFloat(s.type)) return errorf("matmul: of %s, but only floats are multiplied", nameOf(s.type));
  if (s.batch < 1 || s.m < 1 || s.n < 1 || s.k < 1)
    return errorf("matmul: batch %" PRId64 ", m %" PRId64 ", n %" PRId64 ", k %" PRId64
                  ": every extent must be at least 1",
                  s.batch, s.m, s.n, s.k);
  // LIBXSMM counts in 32 bits, and the products below must not overflow 64.
  constexpr int64_t kMostExtent = INT32_MAX;
  if (s.batch > kMostExtent || s.m > kMostExtent || s.n > kMostExtent || s.k > kMostExtent)
    return errorf("matmul: batch %" PRId64 ", m %" PRId64 ", n %" PRId64 ", k %" PRId64
                  ": every extent must be less than 2^31",
                  s.batch, s.m, s.n, s.k);
  if ((s.bias || s.relu || s.mask) && s.accumulate)
    return errorf("matmul: neither bias nor relu nor mask follows a product that is added to the result");
  if (s.mask && (s.bias || s.relu)) return errorf("matmul: a mask, of a gradient, with a bias or relu");
  if ((s.update || s.squares) && (s.accumulate || s.bias || s.relu || s.mask || s.batch != 1))
    return errorf(
        "matmul: what a weight's update takes, and squares, are of one matrix that nothing else follows");
  if (s.batch_stride_a < 0 || s.batch_stride_b < 0)
    return errorf("matmul: batch strides %" PRId64 " and %" PRId64 " must not be negative", s.batch_stride_a,
                  s.batch_stride_b);
  return okStatus();
}

MatmulPlan foldMatmul(const MatmulShape& shape) {
  MatmulPlan plan;
  plan.problem = shape;
  plan.storage = shape.type;
  MatmulShape& p = plan.problem;
  p.type = computedType(shape.type);
  // Many small matrices times one matrix: their rows lie one after another, so they are one tall matrix.
  bool rows_adjoin = p.batch_stride_a == p.m * p.k && (!p.transpose_a || p.m == 1);
  if (p.batch > 1 && p.batch_stride_b == 0 && rows_adjoin && p.batch * p.m <= INT32_MAX) {
    p.transpose_a = false;
    p.m *= p.batch;
    p.batch = 1;
  }
  // A vector lies the same way in memory whether it is a row or a column. As rows, two of them make a dot
  // product.
  if (p.m == 1 || p.k == 1) p.transpose_a = false;
  if (p.n == 1 || p.k == 1) p.transpose_b = p.n == 1 && p.k > 1;
  // A single column is computed as a single row: c^T = op(b)^T · op(a)^T.
  if (p.n == 1 && p.m > 1) {
    plan.swapped = true;
    plan.bias_step = 0;
    p.n = p.m;
    p.m = 1;
    p.transpose_b = p.k > 1 && !p.transpose_a;
    p.transpose_a = false;
    std::swap(p.batch_stride_a, p.batch_stride_b);
  }
  plan.lda = p.transpose_a ? p.m : p.k;
  plan.ldb = p.transpose_b ? p.k : p.n;
  plan.ldc = p.n;
  return plan;
}

MatmulPlan planDot(MatmulPlan plan) {
  const MatmulShape& p = plan.problem;
  plan.method = MatmulMethod::dot;
  plan.tile_m = evenPart(p.m, 32, 4);
  plan.tile_n = evenPart(p.n, 16, 8);
  plan.tile_ns = tileNs(plan);
  return plan;
}

MatmulPlan planFewRows(MatmulPlan plan) {
  const MatmulShape& p = plan.problem;
  plan.strip_m = plan.tile_m = p.m;
  const bool narrow = prefersNarrowPanels(p);
  plan.tile_n = evenPart(p.n, 2048 / sizeOf(p.type), narrow ? kNarrowPanel : 16);
  // A single tile is halved for two threads, if a half is worth a fork and has as many whole vectors by four:
  // four layers of 512 x 512, batch 16, take 457 us instead of 718, 1 x 256 x 256 would take longer.
  constexpr double kLeastNs = 1500;
  if (plan.tile_n == p.n && p.batch == 1 && p.n % 128 == 0 && tileNs(plan) >= 2 * kLeastNs) plan.tile_n /= 2;
  plan.panel_n = narrow ? kNarrowPanel : plan.tile_n;
  // Rows of b in pages of their own: few at a time, so that the prefetcher can follow them.
  plan.block_k = rowBytesOfB(plan) >= kFarApartBytes ? std::min<int64_t>(16, p.k) : p.k;
  return finished(plan, 32, 1);
}

bool canTranspose(const MatmulPlan& plan) {
  const MatmulShape& p = plan.problem;
  return p.transpose_b && !p.transpose_a && p.n * sizeOf(plan.storage) % kMatmulPackBytes == 0;
}

MatmulPlan planTransposed(MatmulPlan plan) {
  MatmulShape& p = plan.problem;
  plan.swapped = plan.transposed = true;
  std::swap(p.m, p.n);
  std::swap(p.batch_stride_a, p.batch_stride_b);
  plan.pack_b = true;
  plan.panel_n = plan.tile_n = evenPart(p.n, kMatmulTransposedSide, 16);
  plan.strip_m = plan.tile_m = evenPart(p.m, kMatmulTransposedSide, 16);
  const int64_t panel_row_bytes = plan.padded(plan.panel_n) * sizeOf(p.type);
  plan.block_k = evenPart(p.k, 32 * 1024 / panel_row_bytes / 16 * 16, 16);
  return finished(plan, 64, 1);
}

MatmulPlan planTiled(MatmulPlan plan, bool pack_a, bool pack_b) {
  const MatmulShape& p = plan.problem;
  const int64_t element_bytes = sizeOf(p.type);
  plan.pack_a = pack_a;
  plan.pack_b = pack_b;
  // 64 columns are what the micro-kernels like best; 32 give a narrow c more tiles to share.
  plan.panel_n = evenPart(p.n, p.n <= 256 && !pack_a ? 32 : 64, 16);
  // Two strips of up to 64 rows at least: threads that share rows of a weight's gradient find them in their
  // cache when it is updated (128 x 784 x 32 takes 1% longer for it).
  const int64_t strip_rows = pack_a || p.m <= 128 ? 64 : pack_b ? 256 : 128;
  plan.strip_m = evenPart(p.m, strip_rows, 8);

  // A packed strip of a serves all columns of the tile, a packed panel of b all its rows: hence large tiles,
  // unless that leaves too few to share.
  const int64_t all_strips = ceilDivide(p.m, plan.strip_m);
  const int64_t all_panels = ceilDivide(p.n, plan.panel_n);
  const int64_t strips = std::min<int64_t>(pack_a ? 4 : 1, all_strips);
  int64_t panels = std::min<int64_t>(pack_a ? 4 : 1, all_panels);
  while (panels > 1 && p.batch * ceilDivide(all_strips, strips) * ceilDivide(all_panels, panels) < 16)
    --panels;
  plan.tile_m = plan.strip_m * strips;
  plan.tile_n = plan.panel_n * panels;

  // A panel of 64 KiB stays in the second-level cache while the rows pass; c is read and written once a
  // block.
  const int64_t panel_row_bytes = plan.padded(plan.panel_n) * element_bytes;
  int64_t most_k = 64 * 1024 / panel_row_bytes;
  if (pack_b) most_k = std::min(most_k, kMatmulPanelBytes / (panel_row_bytes * panels));
  if (pack_a) most_k = std::min(most_k, kMatmulStripBytes / (plan.strip_m * element_bytes));
  plan.block_k = evenPart(p.k, most_k / 16 * 16, 16);
  // Sums aside have less room than f64 would take, which must not change the blocks of k.
  while (plan.sumsAside() && plan.tile_m * plan.tile_n * element_bytes > kMatmulSumBytes)
    plan.tile_n -= plan.panel_n;
  return finished(plan, 64, 4);
}

MatmulPlan planDownward(MatmulPlan plan) {
  const MatmulShape& p = plan.problem;
  plan.strip_m = plan.tile_m = evenPart(p.m, kDownwardSide, 8);
  plan.panel_n = plan.tile_n = evenPart(p.n, kDownwardSide, 16);
  // What a strip and a panel touch, a cache line or four of each row, stays in the second-level cache.
  plan.block_k = evenPart(p.k, 128, 16);
  return finished(plan, 64, 4);
}

// The thresholds come from bench-matmul on one core of a Sapphire Rapids, f32; each names what it was weighed
// on.
MatmulPlan planMatmul(const MatmulShape& shape) {
  MatmulPlan plan = foldMatmul(shape);
  const MatmulShape& p = plan.problem;
  if (canTranspose(plan) && prefersTransposed(p)) return planTransposed(plan);
  if (p.transpose_b && !p.transpose_a && prefersDot(p)) return planDot(plan);
  // b is read once or twice: what counts is to read it in long runs (8 x 3072 x 768: 540 us instead of 740).
  if (!p.transpose_b && p.m <= 16) return planFewRows(plan);
  if (prefersDownward(plan)) return planDownward(plan);
  // Copying b pays at once where its rows collide in the first-level cache (64 x 3072 x 768: 2.2 ms instead
  // of 3.7), and after enough rows of a where they straddle cache lines or are many (1024 x 768 x 2304: 21 ms
  // instead of 23).
  const bool far_apart = rowBytesOfB(plan) >= kFarApartBytes;
  const bool straddle = rowBytesOfB(plan) % kCacheLineBytes != 0;
  const bool worth_copying = far_apart || (straddle && p.m >= 128) || (p.m >= 256 && p.k >= 512);
  const bool pack_b = p.transpose_b || (p.n > 64 && worth_copying);
  // The same for a transposed a, down which a micro-kernel walks (2304 x 768 x 1024: 22 ms instead of 32),
  // and sooner where each step takes it to another page (3072 x 768 x 256: 7.3 ms instead of 13.0, x 64: 1.6
  // instead of 2.1; 1024 x 1024 x 128: 1.54 instead of 1.71).
  const int64_t row_bytes_of_a = plan.lda * sizeOf(p.type);
  const bool walks_far =
      (p.k >= 512 && row_bytes_of_a >= 2048) || (p.k >= 64 && row_bytes_of_a >= kPageBytes);
  const bool pack_a = p.transpose_a && p.n >= 256 && walks_far;
  return planTiled(plan, pack_a, pack_b);
}

bool canSumSquares(const MatmulShape& shape) {
  MatmulShape squared = shape;
  squared.squares = true;
  if (!checkMatmulShape(squared).ok()) return false;
  const MatmulPlan plan = planMatmul(shape);
  return !plan.transposed && !plan.isWidened();
}

std::optional<MatmulPlan> planMatmulOfUpdate(const MatmulShape& shape) {
  if (!canSumSquares(shape)) return std::nullopt;
  MatmulShape handed_on = shape;
  handed_on.update = true;
  const MatmulPlan by_itself = planMatmul(shape), plan = planMatmul(handed_on);
  const bool same = plan.method == by_itself.method && plan.tile_m == by_itself.tile_m &&
                    plan.tile_n == by_itself.tile_n && plan.panel_n == by_itself.panel_n &&
                    plan.strip_m == by_itself.strip_m && plan.block_k == by_itself.block_k;
  return same ? std::optional(plan) : std::nullopt;
}

}  // namespace gpuc
