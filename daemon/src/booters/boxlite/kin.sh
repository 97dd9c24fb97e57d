# Prints the ids of the processes whose environment has the text $1.
kin() {
    for found in $(grep -lF "$1" /proc/[0-9]*/environ); do
        found=${found#/proc/}
        echo "${found%/environ}"
    done
}
