// RUN: not gpuc-opt %s --gpuc-override-recipe=optimizer=adm 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not gpuc-opt %s --gpuc-override-recipe=optimizer=adam:lrr=1 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not gpuc-opt %s --gpuc-override-recipe=optimizer=sgd:lr=-1 2>&1 | FileCheck %s --check-prefix=RATE
// RUN: not gpuc-opt %s --gpuc-override-recipe=optimizer=sgd --split-input-file 2>&1 | FileCheck %s --check-prefix=LOSS

// NAME: error: unknown optimizer 'adm': the nearest is 'adam'; known are adam, adamw, sgd
// KEY: error: optimizer adam has no key 'lrr': the nearest is 'lr'; known are lr, beta1, beta2, eps, weight_decay
// RATE: error: optimizer sgd: Invalid learning rate: -1

// There is nothing to train by.
// LOSS: error: an optimizer needs a recipe, or a function @loss, to train by
module {
}

// -----

// The recipe is expanded: what it said cannot be taken back.
// LOSS: error: the recipe is expanded already: an optimizer can be chosen no more
module {
  func.func @init() {
    return
  }
}
