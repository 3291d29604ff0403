"""python -m hostile.worker kind arguments first: runs the cases of a kind from the first on, and reports each.

Each case is announced before it runs, so that a crash can be attributed to it. An alarm ends a case that hangs.
"""

import json
import resource
import signal
import sys
import traceback
import warnings

import driftwise as dw
from hostile import cases
from hostile.battery import PATIENCE

SAID = sys.stdout


def say(**facts):
    SAID.write(json.dumps(facts) + "\n")
    SAID.flush()


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    kind, arguments, first = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    run = getattr(cases, kind)(**arguments)  # compiles everything
    baseline, sentences, fine = megabytes(), 0, 0
    for number, (what, case) in enumerate(run):
        if number < first:
            continue
        say(case=number, what=what)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            heard = case()
            sentences, fine = sentences + bool(heard), fine + (not heard)
        except dw.DriftwiseError:
            sentences += 1
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            say(finding=f"{type(error).__name__}: {str(error)[:200]} at {last.filename}:{last.lineno}: {what}")
        signal.setitimer(signal.ITIMER_REAL, 0)
    say(summary={"sentences": sentences, "fine": fine, "megabytes": megabytes() - baseline})


main()
