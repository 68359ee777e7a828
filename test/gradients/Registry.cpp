//===- Registry.cpp - All cases ----------------------------------------------===//

#include "test/gradients/Registry.h"

#include <cctype>

namespace gpuc::gradients {

std::string Case::testName() const {
  std::string text = op.substr(op.find('.') + 1) + "_" + name;
  for (char &letter : text)
    if (!std::isalnum(static_cast<unsigned char>(letter)))
      letter = '_';
  return text;
}

std::ostream &operator<<(std::ostream &stream, const Case &described) {
  return stream << described.testName();
}

const std::vector<Case> &registry() {
  static const Cases all = [] {
    Cases cases;
    addArithmeticCases(cases);
    addFunctionCases(cases);
    addLogicCases(cases);
    addShapeCases(cases);
    addIndexedCases(cases);
    addReduceCases(cases);
    addSortCases(cases);
    addContractCases(cases);
    addConvCases(cases);
    addNetworkCases(cases);
    addNormCases(cases);
    addAttentionCases(cases);
    addLossCases(cases);
    addLinearLossCases(cases);
    addRandomCases(cases);
    addScanCases(cases);
    addUpdateCases(cases);
    return cases;
  }();
  return all;
}

} // namespace gpuc::gradients
