# Prints a file's size and one piece of it in base64: output is text, whatever the file is. Arguments: the path, how many
# pieces of 184 KiB to skip.
set -e
if [ ! -f "$1" ]; then
    [ -e "$1" ] && echo "$1 is not a file" >&2 || echo "$1 does not exist" >&2
    exit 1
fi
case $1 in /*) file=$1 ;; *) file=./$1 ;; esac
wc -c <"$file"
dd if="$file" bs=188416 skip="$2" count=1 2>/dev/null | base64
