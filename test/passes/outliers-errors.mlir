// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=skip=outlier:loss=6" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=skip=outliers:los=6" 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=skip=outliers" 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=skip=outliers:loss=0" 2>&1 | FileCheck %s --check-prefix=BELOW
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=skip=outliers:grad_norm=4,window=16" 2>&1 | FileCheck %s --check-prefix=ABOVE
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=skip=outliers:loss=1,window=2.5" 2>&1 | FileCheck %s --check-prefix=WINDOW
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=skip=outliers:loss=1,window=1" 2>&1 | FileCheck %s --check-prefix=SHORT

// Names and keys that there are not.
// NAME: error: unknown skip 'outlier': the nearest is 'outliers'; known are outliers
// KEY: error: skip outliers has no key 'los': the nearest is 'loss'; known are loss, grad_norm, window

// Nothing would be left out.
// NOTHING: error: skip outliers: say above which score, of loss, grad_norm or both: outliers:loss=6,grad_norm=6
// BELOW: error: skip outliers: loss must be above 0, but is 0
// ABOVE: error: skip outliers: grad_norm = 4 would leave out nothing: the greatest score among 16 values is 3.873
// WINDOW: error: skip outliers: window must be an integer from 2 to 1048576, but is 2.5
// SHORT: error: skip outliers: window must be an integer from 2 to 1048576, but is 1
module {
}
