// RUN: not gpuc-opt %s --gpuc-override-recipe=optimizer=adm 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not gpuc-opt %s --gpuc-override-recipe=optimizer=adam:lrr=1 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not gpuc-opt %s --gpuc-override-recipe=optimizer=sgd:lr=-1 2>&1 | FileCheck %s --check-prefix=RATE
// RUN: not gpuc-opt %s --gpuc-override-recipe=optimizer=sgd:lr=1e-400 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not gpuc-opt %s --gpuc-override-recipe=optimizer=sgd:lr=1e50 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not gpuc-opt %s --gpuc-override-recipe=entries=clip_norm=1e-400 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not gpuc-opt %s --gpuc-override-recipe=entries=clip_nrom=1 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not gpuc-opt %s --gpuc-override-recipe=entries=clip_norm=one 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not gpuc-opt %s --gpuc-override-recipe=entries=accumulate=1.5 2>&1 | FileCheck %s --check-prefix=INTEGER
// RUN: not gpuc-opt %s --gpuc-override-recipe=entries=clip_value=-1 2>&1 | FileCheck %s --check-prefix=BOUND
// RUN: not gpuc-opt %s --gpuc-override-recipe=entries=accumulate=0 2>&1 | FileCheck %s --check-prefix=LEAST
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=optimizer=sgd;optimizer=adam" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=linear;schedule=b:c" 2>&1 | FileCheck %s --check-prefix=SPEC
// RUN: not gpuc-opt %s --gpuc-override-recipe=entries=clip_norm=1 --split-input-file 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not gpuc-opt %s --gpuc-override-recipe=optimizer=sgd --split-input-file 2>&1 | FileCheck %s --check-prefix=LOSS

// NAME: error: unknown optimizer 'adm': the nearest is 'adam'; known are adadelta, adafactor, adagrad, adam, adamax, adamw, asgd, lion, muon, nadam, radam, rmsprop, rprop, sgd
// KEY: error: optimizer adam has no key 'lrr': the nearest is 'lr'; known are lr, beta1, beta2, eps, amsgrad, weight_decay, decay, maximize
// RATE: error: optimizer sgd: lr must be 0 or above, but is -1

// Numbers that would become 0, or an infinity, without a word.
// SMALL: error: optimizer sgd: lr is a finite number, not "1e-400", which no f64 is
// LARGE: error: optimizer sgd: lr is 1e+50, which no f32 is
// NOTHING: error: clip_norm: '1e-400' is too small to be another number than 0: write 0.0

// An entry that there is not, and texts that are not of an entry's kind or below its bound.
// ENTRY: error: clip_nrom: unknown entry of a recipe: there are loss, accuracy, batch,
// NUMBER: error: clip_norm: 'one' is not a finite number
// INTEGER: error: accumulate: '1.5' is not an integer
// BOUND: error: clip_value: must be above 0, but is -1 [recipe_C4]
// LEAST: error: accumulate: must be at least 1, but is 0 [recipe_C1]
// TWICE: error: optimizer: given twice, 'sgd' and 'adam'
// SPEC: error: schedule: 'c' in 'b:c' is not key=value

// There is nothing to train by.
// LOSS: error: optimizer needs a recipe, or a function @loss, to train by
module {
}

// -----

// The recipe is expanded: what it said cannot be taken back.
// LOSS: error: the recipe is expanded already: optimizer can be chosen no more
module {
  func.func @init() {
    return
  }
}

// -----

// Nothing is clipped where nothing is trained.
// NONE: error: there is no optimizer, so that clip_norm would do nothing: name one
module {
  func.func @loss(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    return %x, %x : tensor<f32>, tensor<f32>
  }
  gpuc.recipe {
    loss = @loss
  }
}
