//===- PadProducts.cpp - Extents that tensor cores take at full speed -------===//
//
// cuBLASLt loads 16 bytes at once if rows of each of the three matrices begin at multiples of that: 8
// elements of 16 bits, 4 of f32. Rows are as long as the innermost extent: k or m of the left operand, n or k
// of the right one, n of the result. One that is not gets zeros up to the next multiple, which changes no
// sum.
//
// The cost, by the figures of an H200: a product takes the longer of its arithmetic, which is twice as slow
// where rows are not aligned, and of its bytes. Zeros cost nothing where a kernel makes the operand, nor the
// slice where kernels alone read the result; else each is a copy and a launch. A product that is added to
// what is there already is not padded: it writes where the sum lies.
//
//===----------------------------------------------------------------------===//

#include "passes/layout/LayoutSteps.h"

#include "dialects/gpuc/ScanParts.h"
#include "dialects/gpuc/Tf32.h"
#include "passes/base/Decisions.h"
#include "passes/codegen/Codegen.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace gpuc {
namespace {

using ir::ProductExtents;

std::string textOf(const ProductExtents &extents) {
  auto [batch, m, n, k] = extents;
  return (batch > 1 ? std::to_string(batch) + " of " : "") + std::to_string(m) + "x" + std::to_string(n) +
         "x" + std::to_string(k);
}

ProductExtents paddedOf(ir::MatmulOp matmul, ProductExtents extents, int64_t tensorBytes) {
  const int64_t multiple =
      tensorBytes / ir::elementBytes(ir::tensorType(matmul.getResult()).getElementType());
  auto round = [&](int64_t &extent) { extent = llvm::alignTo(extent, multiple); };
  round(matmul.getTransposeLhs() ? extents.m : extents.k);
  round(matmul.getTransposeRhs() ? extents.k : extents.n);
  round(extents.n);
  return extents;
}

bool isOfKernel(Operation *op) { return op && isKernelOp(op); }

/// Whether the result is added to a value that a loop carries: then the product may write where that lies.
bool isAddedUp(ir::MatmulOp matmul) {
  return llvm::any_of(matmul->getUsers(), [&](Operation *user) {
    auto add = dyn_cast<ir::AddOp>(user);
    return add && (isa<BlockArgument>(add.getLhs()) || isa<BlockArgument>(add.getRhs()));
  });
}

/// A product, and what it is to become.
struct Product {
  Product(ir::MatmulOp matmul, int64_t tensorBytes)
      : matmul(matmul), before(matmul.getExtents()), after(paddedOf(matmul, before, tensorBytes)) {}

  /// Rows and columns of zeros that an operand, as it lies in memory, or the result gets.
  using Zeros = std::pair<int64_t, int64_t>;
  Zeros zerosOf(unsigned operand) {
    if (operand == 0)
      return matmul.getTransposeLhs() ? Zeros(k(), m()) : Zeros(m(), k());
    return matmul.getTransposeRhs() ? Zeros(n(), k()) : Zeros(k(), n());
  }
  Zeros zerosOfResult() const { return {m(), n()}; }

  ir::MatmulOp matmul;
  ProductExtents before, after;

private:
  int64_t m() const { return after.m - before.m; }
  int64_t n() const { return after.n - before.n; }
  int64_t k() const { return after.k - before.k; }
};

/// What a loop captures comes from outside, and so do its zeros: gpuc-hoist-from-scans takes them there.
Operation *producerOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto scan = argument ? dyn_cast<ir::ScanOp>(argument.getOwner()->getParentOp()) : ir::ScanOp();
  if (!scan)
    return value.getDefiningOp();
  for (const ir::ScanParts::Argument &capture : ir::ScanParts(scan).captures)
    if (capture.inner == value)
      return capture.outer.getDefiningOp();
  return nullptr;
}

/// The products of a block. All are to be padded at first; those that do not pay are left out one after
/// another, since a kernel makes zeros for nothing only if all who read the operand want the same.
class Padding {
public:
  Padding(Block &block, const TargetDescription &device) : device_(device) {
    for (Operation &op : block)
      if (auto matmul = dyn_cast<ir::MatmulOp>(op);
          matmul && matmul.getType().hasStaticShape() && ir::multipliesOnTensorCores(matmul))
        products_.insert({matmul, Product(matmul, device.tensorBytes)});
  }

  void run(SmallVectorImpl<Attribute> &decisions) {
    for (auto &[op, product] : products_)
      if (StringRef reason = reasonAgainst(product); reason.empty())
        chosen_.insert(op);
      else
        reasons_[op] = reason.str();
    while (llvm::any_of(products_, [&](auto &entry) { return leaveOutIfDear(entry.second); }))
      ;
    for (auto &[op, product] : products_) {
      const std::string from = textOf(product.before);
      const std::string to = chosen_.contains(op) ? textOf(product.after) : from;
      decisions.push_back(decisionOver(op, {/*layout=*/"", from, to, reasons_[op]}));
    }
    for (auto &[op, product] : products_)
      if (chosen_.contains(op))
        pad(product);
  }

private:
  static StringRef reasonAgainst(const Product &product) {
    if (product.before == product.after)
      return "rows are multiples of 16 bytes";
    if (product.before.k == 1)
      return "a product of two vectors";
    return isAddedUp(product.matmul) ? "added up where it lies" : "";
  }

  /// Whether the product was to be padded, and is not any more.
  bool leaveOutIfDear(Product &product) {
    if (!chosen_.contains(product.matmul))
      return false;
    const double saved = nanoseconds(product, product.before, device_.unalignedSlowdown) -
                         nanoseconds(product, product.after, 1),
                 spent = copies(product);
    reasons_[product.matmul] =
        llvm::formatv("{0:f1} us less for {1:f1} us of copies", std::max(saved, 0.0) / 1000, spent / 1000);
    return saved <= spent && chosen_.erase(product.matmul);
  }

  double nanoseconds(Product &product, const ProductExtents &extents, double slowdown) const {
    auto [batch, m, n, k] = extents;
    const int64_t flops = 2 * batch * m * n * k, elements = batch * (m * k + k * n + m * n);
    const int64_t bytes = ir::elementBytes(ir::tensorType(product.matmul.getResult()).getElementType());
    const double rate = bytes == 2 ? device_.tensorFlopsPerNanosecond : device_.tensorFlopsPerNanosecond / 2;
    return std::max(slowdown * static_cast<double>(flops) / rate,
                    static_cast<double>(elements * bytes) / device_.bytesPerNanosecond);
  }

  /// What pads and slices take that no kernel takes in.
  double copies(Product &product) {
    double total = 0;
    auto add = [&](Value value, bool needed, bool absorbed) {
      if (needed && !absorbed)
        total += device_.commandNanoseconds +
                 2.0 * static_cast<double>(ir::sizeInBytes(value.getType())) / device_.bytesPerNanosecond;
    };
    constexpr Product::Zeros none = {0, 0};
    for (OpOperand &operand : product.matmul->getOpOperands()) {
      const Product::Zeros zeros = product.zerosOf(operand.getOperandNumber());
      add(operand.get(), zeros != none, isMadeWithZeros(operand.get(), zeros));
    }
    add(product.matmul.getResult(), product.zerosOfResult() != none,
        llvm::all_of(product.matmul->getUsers(), isOfKernel));
    return total;
  }

  /// Whether the kernel that makes the value makes it with these zeros instead.
  bool isMadeWithZeros(Value value, Product::Zeros zeros) {
    return isOfKernel(producerOf(value)) && llvm::all_of(value.getUses(), [&](OpOperand &use) {
             return chosen_.contains(use.getOwner()) &&
                    products_.find(use.getOwner())->second.zerosOf(use.getOperandNumber()) == zeros;
           });
  }

  void pad(Product &product) {
    ir::MatmulOp matmul = product.matmul;
    OpBuilder builder(matmul);
    auto made = cast<ir::MatmulOp>(builder.clone(*matmul));
    made->setOperands(
        {padded(matmul.getLhs(), product.zerosOf(0)), padded(matmul.getRhs(), product.zerosOf(1))});
    RankedTensorType type = ir::tensorType(matmul.getResult());
    SmallVector<int64_t> shape(type.getShape());
    auto [rows, columns] = product.zerosOfResult();
    shape.end()[-2] += rows;
    shape.end()[-1] += columns;
    made.getResult().setType(type.clone(shape));
    Value result = made.getResult();
    if (result.getType() != type) {
      SmallVector<int64_t> zeros(shape.size(), 0), ones(shape.size(), 1);
      result = ir::SliceOp::create(builder, matmul.getLoc(), type, result, zeros, type.getShape(), ones);
    }
    matmul.getResult().replaceAllUsesWith(result);
    matmul.erase();
  }

  /// With so many rows and columns of zeros more, behind the value's own definition.
  static Value padded(Value value, Product::Zeros zeros) {
    if (zeros == Product::Zeros(0, 0))
      return value;
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    SmallVector<int64_t> none(ir::tensorType(value).getRank(), 0), high = none;
    std::tie(high.end()[-2], high.end()[-1]) = zeros;
    return ir::PadOp::create(builder, value.getLoc(), value, none, high, none, APFloat(0.0));
  }

  const TargetDescription &device_;
  llvm::MapVector<Operation *, Product> products_;
  DenseSet<Operation *> chosen_;
  DenseMap<Operation *, std::string> reasons_;
};

} // namespace

void padProducts(Block &block, const TargetDescription &device, SmallVectorImpl<Attribute> &decisions) {
  Padding(block, device).run(decisions);
}

} // namespace gpuc
