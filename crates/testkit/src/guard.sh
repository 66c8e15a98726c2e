# Outlives a test process that could not clean up: it was killed, or it aborted.
# Standard input is a pipe whose other end only the test process holds, so its end of file is the
# death of that process. $1 is the folder to leave nothing of; the process that works in it, if
# there is one, has its id in $1/pid.
trap '' HUP INT TERM
read -r _
pid=$(cat "$1/pid" 2>/dev/null)
ours() {
    case $(readlink "/proc/$pid/cwd") in "$1" | "$1"/*) return 0 ;; *) return 1 ;; esac
}
if [ -n "$pid" ] && ours "$1"; then
    kill -QUIT "$pid"
    for _ in $(seq 50); do
        ours "$1" || break
        sleep 0.1
    done
    ours "$1" && kill -KILL "$pid"
fi
rm -rf "$1"
