# Runs a program as a session asked for it. Arguments: the file for its output, the task, `keep` to keep that file, the
# language and the program's text; none: standard input has it.
#
# The output goes through a pipe to the file, not to our standard output: that ends with us although something may be
# left running, and a server that cannot keep up drops what it is sent. What is short is printed once the program ended,
# of the rest head and tail. Standard error is for what the daemon must know. TERM ends the program and all it started.
out=$1 task=$2 keep=$3 language=$4
exec 3>&2 2>/dev/null
umask 077
mkdir -p "${out%/*}"
if [ $# -ge 5 ]; then
    text=$5
elif cat >"$out.text"; then
    [ "$language" = python ] && text="exec(compile(open('$out.text', 'rb').read(), '<string>', 'exec'))" || text=". $out.text"
fi
if [ "$language" = python ]; then
    set -- python3 -u -c "$text"
elif [ -x /bin/bash ]; then
    set -- /bin/bash -c "$text"
else
    set -- /bin/sh -c "$text"
fi

end() {
    kill -TERM $program $(kin "NANO_RUN=$out")
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ "$(kin "NANO_RUN=$out")" ] || break
        sleep 0.2 || sleep 1
    done
    kill -KILL $program $(kin "NANO_RUN=$out")
}

mkfifo "$out.in" || exec "$@" </dev/null 2>&1
# 64 MiB at most; what is longer must not keep the program from going on.
{
    trap '' XFSZ
    ulimit -f 131072
    cat >"$out"
    cat >/dev/null
} <"$out.in" >/dev/null 3>&- &
reader=$!
trap end TERM HUP
NANO_TASK=$task NANO_RUN=$out "$@" </dev/null >"$out.in" 2>&1 3>&- &
program=$!
while
    wait $program
    status=$?
    kill -0 $program
do :; done
trap - TERM HUP

rm -f "$out.in"
set -- $(kin "NANO_RUN=$out")
# Who was left running may print on for ever; where nobody was, the pipe ends once all of it was read.
[ $# -gt 0 ] && tries=8 || tries=100
while kill -0 $reader && [ $((tries -= 1)) -ge 0 ]; do
    sleep 0.05 || sleep 1
done
size=$(wc -c <"$out")
if [ "$size" -le 49152 ]; then
    cat "$out"
    [ $# -gt 0 ] || [ "$keep" = keep ] || rm -f "$out"
else
    head -c 8192 "$out"
    printf '\n[… %s bytes left out; ' $((size - 40960))
    [ "$size" -lt 67108864 ] && printf 'the whole output is' || printf 'its first 64 MiB are'
    printf ' in %s in the sandbox …]\n' "$out"
    tail -c 32768 "$out"
fi
rm -f "$out.text"
[ $# -eq 0 ] || echo "$out left $#" >&3
exit $status
