"""SIGTERM reaches the JVM that spark-submit became, and not the driver beside it, which alone knows how to end."""

from __future__ import annotations

import os
from typing import Any

from pyspark import SparkContext


def hand_on_sigterm() -> None:
    """From now on, and before there is a context, the JVM answers SIGTERM by sending it to this process, and ends when
    this one has.

    Without that it would cancel all jobs at once. A handler in Python would need py4j's callback server: one made of
    the JVM's own method handles does not.
    """
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    invoke = jvm.java.lang.invoke
    process, signal = (jvm.java.lang.Class.forName(name) for name in ("java.lang.ProcessHandle", "sun.misc.Signal"))
    handler = jvm.java.lang.Class.forName("sun.misc.SignalHandler")
    nothing, flag = jvm.java.lang.Void.TYPE, jvm.java.lang.Boolean.TYPE
    destroy = invoke.MethodHandles.publicLookup().findVirtual(process, "destroy", invoke.MethodType.methodType(flag))
    bound = destroy.bindTo(jvm.java.lang.ProcessHandle.of(os.getpid()).get())
    silent = bound.asType(invoke.MethodType.methodType(nothing))
    parameters = jvm.java.util.ArrayList()
    parameters.add(signal)
    forward = invoke.MethodHandles.dropArguments(silent, 0, parameters)
    answer = invoke.MethodHandleProxies.asInterfaceInstance(handler, forward)
    jvm.sun.misc.Signal.handle(jvm.sun.misc.Signal("TERM"), answer)
