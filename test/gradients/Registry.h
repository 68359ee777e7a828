//===- Registry.h - Every op described once, for every check -----------------===//
//
// A case is a small function around one op. From it come: the gradient against central differences, the
// second derivative likewise, a composite against its decomposition, and the host's kernels against the
// interpreter. Cases are text with `$T` for the floating-point type under test.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <limits>
#include <ostream>
#include <string>
#include <vector>

namespace gpuc::gradients {

/// An argument of the function, %x0, %x1, …
struct Input {
  std::string type;                ///< "3x5x$T", "4xi32", "$T"
  double low = -1, high = 1;       ///< Drawn uniformly from [low, high]; integers and i1 included.
  std::vector<double> values = {}; ///< Instead of being drawn.
  bool differentiate = true;       ///< If it is floating point.

  bool isReal() const { return type.ends_with("$T"); }
};

/// A value that the body defines and the function returns.
struct Output {
  std::string name; ///< "%y"
  std::string type;
};

/// What derivatives a case has.
enum class Derivatives {
  none,       ///< The op has none, or the inputs are not for that (NaN, infinities).
  first,      ///< The second does not exist here: at ties and kinks the first one jumps.
  second,     ///< Both, by central differences.
  convention, ///< At a kink, where differences say nothing: `expected` by the first input, weights 1.
};

struct Case {
  std::string op;   ///< "gpuc.add"
  std::string name; ///< Unique among the op's cases.
  std::vector<Input> inputs;
  std::string body;
  std::vector<Output> outputs; ///< The first is differentiated.
  Derivatives derivatives = Derivatives::second;
  std::vector<double> expected = {};

  /// Size of what is added up inside of the op beyond its inputs and results: 1 for Φ(x) = (1 + erf) / 2.
  double inner = 0;

  /// "matmul_transpose_lhs", as GoogleTest wants names.
  std::string testName() const;
};

std::ostream &operator<<(std::ostream &stream, const Case &described);

/// All cases.
const std::vector<Case> &registry();

using Cases = std::vector<Case>;
void addArithmeticCases(Cases &cases);
void addFunctionCases(Cases &cases);
void addLogicCases(Cases &cases);
void addShapeCases(Cases &cases);
void addIndexedCases(Cases &cases);
void addReduceCases(Cases &cases);
void addSortCases(Cases &cases);
void addContractCases(Cases &cases);
void addConvCases(Cases &cases);
void addNetworkCases(Cases &cases);
void addNormCases(Cases &cases);
void addAttentionCases(Cases &cases);
void addLossCases(Cases &cases);
void addLinearLossCases(Cases &cases);
void addRandomCases(Cases &cases);
void addScanCases(Cases &cases);
void addUpdateCases(Cases &cases);

/// "tensor<3x5x$T>"
inline std::string tensor(const std::string &type) { return "tensor<" + type + ">"; }

/// "3x5x$T" of the shape "3x5"; "$T" of "".
inline std::string real(const std::string &shape) { return shape.empty() ? "$T" : shape + "x$T"; }

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

} // namespace gpuc::gradients
