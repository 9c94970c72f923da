# Runs ./script of a job. Arguments: time limit, grace, output limit, cgroup, ulimit's words, kind of script, and how many
# variables INHOST_USER_n the script gets as its own.
wall=$1 grace=$2 most=$3 cgroup=$4 limits=$5 kind=$6 variables=$7
umask 077
# Descriptors that the host was given by others are not the job's.
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
mkdir started 2>/dev/null || exit 125
read -r boot </proc/sys/kernel/random/boot_id
read -r stat </proc/$$/stat
printf '%s\n%s\n' "$boot" "$stat" >pid.new && mv -f pid.new pid || exit 125
# The status has its place from the beginning: it can be told on a full disk, too.
printf '%s\n' '    ' >status.new || exit 125
tell() {
    printf '%-4s\n' "$1" 1<>status.new && mv -f status.new status
}
# Keeps the beginning of a stream; what follows is counted and thrown away.
keep() {
    $unbuffered head -c "$most" >"$1" || : >unwritten
    more=$(wc -c)
    [ "$more" -eq 0 ] || printf '%s: %s more octets were cut\n' "$1" "$more" >>cut
}
# Readers follow the output while it is written.
unbuffered=
! command -v stdbuf >/dev/null || unbuffered='stdbuf -o0'
mkfifo out err || { tell 126; exit 0; }
keep stdout <out &
first=$!
keep stderr <err &
second=$!
inner='
kind=$1 cgroup=$2 variables=$3
shift 3
[ -z "$cgroup" ] || echo $$ >"$cgroup/cgroup.procs" 2>/dev/null
while [ $# -gt 1 ]; do
    case $1 in
    u) ulimit -u "$2" 2>/dev/null || ulimit -p "$2" 2>/dev/null ;;
    # XCPU at the limit, and KILL a second later if that is ignored: the status tells which limit it was.
    t) ulimit -S -t "$2" && { ulimit -H -t $(($2 + 1)) 2>/dev/null || :; } ;;
    *) ulimit "-$1" "$2" ;;
    esac || { echo "the limit $1 $2 cannot be set" >&2; exit 126; }
    shift 2
done
cd work || exit 126
while [ "$variables" -gt 0 ]; do
    variables=$((variables - 1))
    eval "export \"\$INHOST_USER_$variables\"; unset INHOST_USER_$variables"
done
if [ "$kind" = own ]; then exec ../script; else exec /bin/sh ../script; fi'
# $limits is a list of words.
if [ -n "$wall" ]; then
    setsid timeout -k "$grace" "$wall" /bin/sh -c "$inner" job "$kind" "$cgroup" "$variables" $limits >out 2>err </dev/null &
else
    setsid /bin/sh -c "$inner" job "$kind" "$cgroup" "$variables" $limits >out 2>err </dev/null &
fi
script=$!
printf '%s\n' "$script" >group.new && mv -f group.new group
wait "$script"
code=$?
# What the script left behind ends with it.
kill -KILL "-$script" 2>/dev/null
[ -z "$cgroup" ] || echo 1 >"$cgroup/cgroup.kill" 2>/dev/null
[ -z "$cgroup" ] || ! grep -q '^oom_kill [1-9]' "$cgroup/memory.events" 2>/dev/null || : >killed
# A process that has left the group may hold the output open: not for longer than this.
# It is told to end at any moment: its pause ends with it as soon as there is one. TERM could be lost before its exec.
(
    before=$!
    trap '[ "$!" = "$before" ] || kill -KILL "$!"; exit' TERM
    sleep 5 &
    wait "$!"
    trap - TERM
    kill -KILL "$first" "$second"
) 2>/dev/null &
late=$!
wait "$first" "$second" 2>/dev/null
kill -TERM "$late" 2>/dev/null
rm -f out err
[ -z "$cgroup" ] || rmdir "$cgroup" 2>/dev/null
tell "$code"
