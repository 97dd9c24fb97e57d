# Writes standard input to a file, all of it or nothing; prints its size and where it is. Argument: the path.
set -e
if [ -d "$1" ]; then
    echo "$1 is a folder" >&2
    exit 1
fi
case $1 in */*) folder=${1%/*}/ ;; *) folder=./ ;; esac
mkdir -p -- "$folder"
cd -- "$folder"
name=${1##*/}
part=./$name.part$$
trap 'rm -f -- "$part"' EXIT
exec 3<&0
cat <&3 >"$part" &
writer=$!
trap 'kill $writer; exit 1' TERM HUP
wait $writer
size=$(wc -c <"$part")
mv -f -- "$part" "./$name"
here=$(pwd)
echo $size "${here%/}/$name"
