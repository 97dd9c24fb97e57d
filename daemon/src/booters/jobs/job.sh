w=$PWD
d=$w/.nanod/jobs/$id
mark="nanod-$id"
marked() { grep -l "NANOD_JOB=$id" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }
sweep() {
    for environ in $(grep -lF "NANOD_RUN=$w:" /proc/[0-9]*/environ 2>/dev/null); do
        grep -qF "NANOD_RUN=$w:$run" "$environ" || kill -s KILL "$(echo "$environ" | cut -d/ -f3)"
    done 2>/dev/null
}
nap() { if sleep 0.1 2>/dev/null; then n=$((n + 1)); else sleep 1; n=$((n + 10)); fi; }
lives() { [ ! -e "$d/pid" ] || { s=$(cat "/proc/$(cat "$d/pid")/stat" 2>/dev/null) && case $s in *') Z '*) false ;; esac; }; }
put() { mkdir -p "$d" && printf %s "$1" >>"$d/cmd"; }
launch() {
    cat >"$d/run" <<'END' || exit
echo $$ >"$1/pid"
[ -e "$1/stop" ] && exit
if command -v bash >/dev/null; then s=bash; else s=sh; fi
NANOD_JOB=$2 NANOD_RUN=$3 "$s" -c 'eval "set --; $(cat "$1")"' "$s" "$1/cmd"
echo $? >"$1/new"
mv "$1/new" "$1/rc"
END
    cd "$1" 2>/dev/null || { rm -rf "$d"; echo "$mark nowhere 0 0 $1"; exit 1; }
    if command -v setsid >/dev/null; then own=setsid; else own=; fi
    $own sh "$d/run" "$d" "$id" "$w:$run" >"$d/out" 2>&1 </dev/null &
}
part() {
    cat >"$d/$1.$$"
    if [ "$(LC_ALL=C tr -d '\011\012\040-\176' <"$d/$1.$$" | wc -c)" -eq 0 ]; then
        echo "$mark $1 text"
        cat "$d/$1.$$"
    else
        echo "$mark $1 hex"
        od -An -v -tx1 <"$d/$1.$$" | tr -d ' \n'
    fi
    echo
    rm -f "$d/$1.$$"
}
look() {
    [ -e "$d/run" ] || { echo "$mark dead 0 0 $d/out"; exit; }
    n=0
    while [ "$n" -lt "$1" ] && [ ! -e "$d/rc" ] && lives; do nap; done
    state=running
    if [ ! -e "$d/rc" ] && ! lives; then state=dead; fi
    if [ -e "$d/rc" ]; then state=$(cat "$d/rc"); fi
    [ -e "$d/out" ] || : >"$d/out"
    size=$(($(wc -c <"$d/out")))
    echo "$mark $state $(($(marked | wc -l))) $size $d/out"
    if [ "$state" != running ] || [ "$2" = show ]; then
        if [ "$size" -le $((head + tail)) ]; then
            head -c "$size" "$d/out" | part head
        else
            head -c "$head" "$d/out" | part head
            tail -c "$tail" "$d/out" | part tail
        fi
    fi
    echo "$mark end"
}
stop() {
    mkdir -p "$d" && : >"$d/stop"
    for signal in TERM KILL; do
        [ -e "$d/rc" ] || kill -s "$signal" -- "-$(cat "$d/pid" 2>/dev/null)" 2>/dev/null
        found=$(marked)
        [ -z "$found" ] || kill -s "$signal" $found 2>/dev/null
        n=0
        while [ "$n" -lt 20 ] && [ -n "$(marked)" ]; do nap; done
    done
}
