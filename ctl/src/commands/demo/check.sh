# Checks the port. It waits for .go, so that there is time to say something to the running task.
: > .started
tries=0
while [ ! -e .go ] && [ "$tries" -lt 200 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
[ -e .go ] || { echo "nobody said go"; exit 1; }
port=$(sed -n 's/^port = //p' app.conf)
echo "port $port is taken"
