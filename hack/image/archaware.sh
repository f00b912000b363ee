#!/bin/sh
# `archaware` on the PATH of the image. A command that is started beside the controller (kubectl exec) shares the memory of the
# container with it, so it gets 64 MiB of heap. src/cli/deployed.ts decides by the same rule whether it is.
first=
if [ -r /proc/1/cmdline ]; then first=$(tr '\000' ' ' < /proc/1/cmdline); fi
case $first in
  *"main.js run "* | *"main.js -"*) ;;
  *) exec node /app/dist/main.js "$@" ;;
esac
# Old objects, and three times the space of young ones: 62 MiB in all. This wins over NODE_OPTIONS.
node --max-old-space-size=56 --max-semi-space-size=2 /app/dist/main.js "$@"
code=$?
# V8 ends the process by SIGABRT if the heap is full, the kernel by SIGKILL if the container's memory is.
case $code in
  134 | 137)
    echo 'archaware: this needs more memory than a command gets in the container of the controller; run it outside the cluster or as a Job' >&2
    exit 1
    ;;
esac
exit $code
