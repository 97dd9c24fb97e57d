# Ends everything that carries the mark: TERM, two seconds, KILL.
exec 2>/dev/null
kill -TERM $(kin "$1")
for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ "$(kin "$1")" ] || exit 0
    sleep 0.2 || sleep 1
done
kill -KILL $(kin "$1")
exit 0
