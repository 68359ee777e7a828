// RUN: not gpuc-opt %s --gpuc-decompose=keep=softmaxx 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not gpuc-opt %s --gpuc-decompose=keep=add 2>&1 | FileCheck %s --check-prefix=SIMPLE

// What cannot be kept is misspelt, or simple as it is.
// UNKNOWN: error: keep: 'gpuc.softmaxx' is not a composite op of the gpuc dialect
// SIMPLE: error: keep: 'gpuc.add' is not a composite op of the gpuc dialect
module {
}
