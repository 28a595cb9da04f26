"""A loop of calls takes no memory from the system each time round, however deep in a test it is."""

import resource

LOOPS = 1000
DEEPEST = 300  # calls, each with a frame of about 160 bytes


def test_a_loop_takes_no_memory_each_time_round() -> None:
    worst = 0

    def loop_at(depth: int) -> None:
        nonlocal worst
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(LOOPS):
            called()
        worst = max(worst, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
        if depth:
            loop_at(depth - 1)

    def called() -> None:
        """Its frame is larger than those of the loops, so that at some depth it does not fit into what is left."""

    called.__code__ = called.__code__.replace(co_stacksize=100)
    loop_at(DEEPEST)
    assert worst < LOOPS / 10
