// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=cosin" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=cosine:Tmax=9" 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=cosine" 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=multi_step" 2>&1 | FileCheck %s --check-prefix=NO_MILESTONES
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=exponential:gamma=half" 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=one_cycle:max_lr=1,total_steps=9,anneal_strategy=cosine" 2>&1 | FileCheck %s --check-prefix=CHOICE
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=one_cycle:max_lr=1,total_steps=9,anneal_strategy=1" 2>&1 | FileCheck %s --check-prefix=CHOICE_NUMBER
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=constant:factor=2" 2>&1 | FileCheck %s --check-prefix=FACTOR
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=linear:start_factor=-0.5" 2>&1 | FileCheck %s --check-prefix=START
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=linear:end_factor=1.5" 2>&1 | FileCheck %s --check-prefix=END
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=linear:total_iters=-1" 2>&1 | FileCheck %s --check-prefix=LENGTH
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=constant:total_iters=0" 2>&1 | FileCheck %s --check-prefix=CONSTANT_LENGTH
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=polynomial:total_iters=2.5" 2>&1 | FileCheck %s --check-prefix=POLYNOMIAL
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=step:step_size=0" 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=cosine:T_max=0" 2>&1 | FileCheck %s --check-prefix=WAVE
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=cosine_restarts:T_0=-3" 2>&1 | FileCheck %s --check-prefix=CYCLE
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=cosine_restarts:T_0=3,T_mult=0" 2>&1 | FileCheck %s --check-prefix=GROWTH
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=multi_step:milestones=(30,20)" 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=multi_step:milestones=(1.5,20)" 2>&1 | FileCheck %s --check-prefix=FRACTION
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=one_cycle:max_lr=1,total_steps=9,pct_start=1.5" 2>&1 | FileCheck %s --check-prefix=PART
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=one_cycle:max_lr=1,total_steps=0" 2>&1 | FileCheck %s --check-prefix=STEPS
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=one_cycle:max_lr=1,total_steps=9,final_div_factor=0" 2>&1 | FileCheck %s --check-prefix=DIVISOR
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=one_cycle:max_lr=1,total_steps=10,pct_start=0.1" 2>&1 | FileCheck %s --check-prefix=RISE
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=linear;schedule=cosine:T_max=9" 2>&1 | FileCheck %s --check-prefix=OPEN
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=linear:steps=-4;schedule=cosine:T_max=9" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=linear:steps=9;schedule=cosine:T_max=9,steps=9" 2>&1 | FileCheck %s --check-prefix=LAST
// RUN: not gpuc-opt %s --gpuc-override-recipe="entries=schedule=linear:steps=9;schedule=given" 2>&1 | FileCheck %s --check-prefix=GIVEN

// Names and keys that there are not, or that are missing.
// NAME: error: unknown schedule 'cosin': the nearest is 'cosine'; known are constant, cosine, cosine_restarts, exponential, given, linear, multi_step, one_cycle, polynomial, step
// KEY: error: schedule cosine has no key 'Tmax': the nearest is 'T_max'; known are T_max, eta_min, steps
// MISSING: error: schedule cosine needs a value for 'T_max'
// NO_MILESTONES: error: schedule multi_step needs a value for 'milestones'

// Values of another kind.
// TEXT: error: schedule exponential: gamma is a finite number, not "half"
// CHOICE: error: schedule one_cycle: anneal_strategy is one of cos, linear, not "cosine"
// CHOICE_NUMBER: error: schedule one_cycle: anneal_strategy is one of cos, linear, not 1{{$}}

// Values that make no schedule.
// FACTOR: error: schedule constant: Constant multiplicative factor expected to be between 0 and 1, but got 2
// START: error: schedule linear: Starting multiplicative factor expected to be between 0 and 1, but got -0.5
// END: error: schedule linear: Ending multiplicative factor expected to be between 0 and 1, but got 1.5
// LENGTH: error: schedule linear: Expected positive integer total_iters, but got -1
// CONSTANT_LENGTH: error: schedule constant: Expected positive integer total_iters, but got 0
// POLYNOMIAL: error: schedule polynomial: Expected positive integer total_iters, but got 2.5
// SIZE: error: schedule step: Expected positive integer step_size, but got 0
// WAVE: error: schedule cosine: Expected positive integer T_max, but got 0
// CYCLE: error: schedule cosine_restarts: Expected positive integer T_0, but got -3
// GROWTH: error: schedule cosine_restarts: Expected integer T_mult >= 1, but got 0
// ORDER: error: schedule multi_step: Milestones should be a list of increasing integers. Got (30, 20)
// FRACTION: error: schedule multi_step: Milestones should be a list of increasing integers. Got (1.5, 20)
// PART: error: schedule one_cycle: Expected float between 0 and 1 pct_start, but got 1.5
// STEPS: error: schedule one_cycle: Expected positive integer total_steps, but got 0
// DIVISOR: error: schedule one_cycle: Expected positive final_div_factor, but got 0
// RISE: error: schedule one_cycle: pct_start * total_steps = 1 gives the rise no length

// Who follows whom, and when.
// OPEN: error: schedule linear: another follows it: say after how many 'steps'
// NEGATIVE: error: schedule linear: Expected positive integer steps, but got -4
// GIVEN: error: schedule given: whoever runs the plan gives the rate of each update: nothing goes before it or follows it
// LAST: error: schedule cosine: nothing follows it: leave out 'steps'
module {
}
