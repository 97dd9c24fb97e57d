# Prints a file's size, or one piece of it in base64: output is text, whatever the file is. Arguments: the path, how
# many pieces of 128 KiB to skip; none: the size.
set -e
if [ ! -f "$1" ]; then
    [ -e "$1" ] && echo "$1 is not a file" >&2 || echo "$1 does not exist" >&2
    exit 1
fi
case $1 in /*) file=$1 ;; *) file=./$1 ;; esac
if [ $# -eq 1 ]; then
    wc -c <"$file"
else
    dd if="$file" bs=131072 skip="$2" count=1 2>/dev/null | base64
fi
