//===- GpucFolders.cpp - What an op is worth when its operands are known ----===//

#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {
OpFoldResult AddOp::fold(FoldAdaptor) { return {}; }
OpFoldResult SubOp::fold(FoldAdaptor) { return {}; }
OpFoldResult MulOp::fold(FoldAdaptor) { return {}; }
OpFoldResult DivOp::fold(FoldAdaptor) { return {}; }
OpFoldResult NegOp::fold(FoldAdaptor) { return {}; }
OpFoldResult CastOp::fold(FoldAdaptor) { return {}; }
OpFoldResult SumOp::fold(FoldAdaptor) { return {}; }
OpFoldResult ReshapeOp::fold(FoldAdaptor) { return {}; }
OpFoldResult TransposeOp::fold(FoldAdaptor) { return {}; }
OpFoldResult BroadcastOp::fold(FoldAdaptor) { return {}; }
OpFoldResult SliceOp::fold(FoldAdaptor) { return {}; }
OpFoldResult PadOp::fold(FoldAdaptor) { return {}; }
OpFoldResult ConcatOp::fold(FoldAdaptor) { return {}; }
OpFoldResult ReverseOp::fold(FoldAdaptor) { return {}; }
} // namespace gpuc::ir
