"""PyTorch's convolutions, which are oneDNN's, layer by layer: a line of JSON in, one out, for bench/conv_peers.py.

In: `in`, `out`, `extent`, `kernel`, `stride`, `padding`, `groups`, `batch`. Out: µs of the three convolutions, each by the quicker of the
two layouts (`forward`, `input_gradient`, `filter_gradient`), and which that was (`layouts`). One thread, in time of the processor, the
least of seven rounds of 1 ms or more, as bench-conv measures. Each way has its operands in its own layout already.
"""

import json
import sys
import time

import torch


def least_us(run):
    run()
    least = float("inf")
    for _ in range(7):
        runs, begin = 0, time.thread_time()
        while (elapsed := time.thread_time() - begin) < 1e-3:
            run()
            runs += 1
        least = min(least, elapsed / runs)
    return least * 1e6


def measure(layer, layout):
    kernel, stride, padding, groups = (layer[name] for name in ("kernel", "stride", "padding", "groups"))
    x = torch.rand(layer["batch"], layer["in"], layer["extent"], layer["extent"]).to(memory_format=layout)
    w = torch.rand(layer["out"], layer["in"] // groups, kernel, kernel).to(memory_format=layout)
    dy = torch.rand_like(torch.nn.functional.conv2d(x, w, None, stride, padding, 1, groups)).contiguous(memory_format=layout)

    def backward(*wanted):
        torch.ops.aten.convolution_backward(dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups, [*wanted, False])

    return {
        "forward": least_us(lambda: torch.nn.functional.conv2d(x, w, None, stride, padding, 1, groups)),
        "input_gradient": least_us(lambda: backward(True, False)),
        "filter_gradient": least_us(lambda: backward(False, True)),
    }


torch.set_num_threads(1)
with torch.no_grad():
    for line in sys.stdin:
        layer = json.loads(line)
        ways = {"nchw": measure(layer, torch.contiguous_format), "nhwc": measure(layer, torch.channels_last)}
        answer = {"layouts": {}}
        for what in ways["nchw"]:
            best = min(ways, key=lambda layout: ways[layout][what])
            answer[what], answer["layouts"][what] = ways[best][what], best
        print(json.dumps(answer), flush=True)
