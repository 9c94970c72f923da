// Command inhost-bench-gvisor is gVisor's netstack under the measurements of `make bench`: one measurement a process,
// one line of JSON as its answer. The words are those of inhost-subject.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const usage = "usage: inhost-bench-gvisor MEASUREMENT SECONDS\n" +
	"measurements: memory-bulk-MTU[-trusted]  echo-memory  connect  memory\n" +
	"  LINK:LOAD of tun-plain packet-offload and send receive echo consume\n"

// answer is what is printed: figures by name, and the settings under which they came about.
type answer struct {
	Figures  map[string]float64 `json:"figures"`
	Settings string             `json:"settings"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%q is no number of seconds\n%s", os.Args[2], usage)
		os.Exit(2)
	}
	// Collecting less often than Go does by default is faster for all of this.
	debug.SetGCPercent(400)
	said, err := measure(os.Args[1], time.Duration(seconds*1e9))
	if err != nil {
		fmt.Fprintf(os.Stderr, "inhost-bench-gvisor %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
	said.Settings = "netstack, module of 2026-09-05, GOGC 400; " + said.Settings
	json.NewEncoder(os.Stdout).Encode(said)
}

func measure(word string, length time.Duration) (answer, error) {
	if words, ok := strings.CutPrefix(word, "memory-bulk-"); ok {
		// Two hosts on one thread, as everybody's here.
		runtime.GOMAXPROCS(1)
		return memoryBulk(words, length)
	}
	if link, load, ok := strings.Cut(word, ":"); ok {
		return onLink(link, load, length)
	}
	switch word {
	case "echo-memory":
		runtime.GOMAXPROCS(1)
		return memoryEcho(length)
	case "connect":
		runtime.GOMAXPROCS(1)
		return connects(length)
	case "memory":
		return memoryPerConnection()
	}
	return answer{}, fmt.Errorf("no such measurement\n%s", usage)
}

// coreSeconds is the time that cores have spent on this process.
func coreSeconds() float64 {
	var at unix.Timespec
	unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &at)
	return float64(at.Sec) + float64(at.Nsec)/1e9
}
