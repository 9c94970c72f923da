package main

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	pieceBytes  = 32 << 10
	windowBytes = 256 << 10
	// idleConnections are opened to see what one takes.
	idleConnections = 2_000
)

func memoryBulk(words string, length time.Duration) (answer, error) {
	word, rest, _ := strings.Cut(words, "-")
	mtu, err := strconv.ParseUint(word, 10, 16)
	if err != nil || (rest != "" && rest != "trusted") {
		return answer{}, fmt.Errorf("%q is not understood", words)
	}
	callers, called, err := two(uint32(mtu), rest == "trusted", windowBytes, 1)
	if err != nil {
		return answer{}, err
	}
	go fill(callers[0])
	var received atomic.Uint64
	go drain(called[0], &received)
	time.Sleep(length / 5)
	bytes, core := received.Load(), coreSeconds()
	time.Sleep(length)
	bytes, core = received.Load()-bytes, coreSeconds()-core
	if bytes == 0 {
		return answer{}, fmt.Errorf("nothing came")
	}
	settings := fmt.Sprintf("CUBIC, SACK, RACK, timestamps; GOMAXPROCS 1, pipe link, MTU %d, buffers of 256 KiB and as much "+
		"again at the receiver, not moderated", mtu)
	if rest == "trusted" {
		settings += ", no checksums"
	}
	return answer{map[string]float64{
		"rate": float64(bytes) * 8 / core / 1e9, "core_seconds": core, "bytes": float64(bytes),
	}, settings}, nil
}

// fill writes until the connection ends.
func fill(to net.Conn) {
	text := make([]byte, pieceBytes)
	for {
		if _, err := to.Write(text); err != nil {
			return
		}
	}
}

// drain reads until the connection ends.
func drain(from net.Conn, received *atomic.Uint64) {
	place := make([]byte, pieceBytes)
	for {
		n, err := from.Read(place)
		received.Add(uint64(n))
		if err != nil {
			return
		}
	}
}

func memoryEcho(length time.Duration) (answer, error) {
	callers, called, err := two(1500, false, 0, 1)
	if err != nil {
		return answer{}, err
	}
	go func() {
		place := make([]byte, 16)
		for {
			n, err := called[0].Read(place)
			if err != nil {
				return
			}
			if _, err := called[0].Write(place[:n]); err != nil {
				return
			}
		}
	}()
	figures, err := echoes(callers[0], length, 4)
	return answer{figures, "a goroutine at each end, no delay option left as it is; GOMAXPROCS 1, pipe link"}, err
}

// echoes sends one byte at a time and waits for it; group round trips are timed together.
func echoes(at net.Conn, length time.Duration, group int) (map[string]float64, error) {
	place := make([]byte, 16)
	var each []float64
	began := time.Now()
	last := began
	for last.Sub(began) < length {
		for range group {
			if _, err := at.Write([]byte("x")); err != nil {
				return nil, err
			}
			if _, err := io.ReadFull(at, place[:1]); err != nil {
				return nil, err
			}
		}
		now := time.Now()
		if now.Sub(began) > length/5 {
			each = append(each, float64(now.Sub(last).Nanoseconds())/1e3/float64(group))
		}
		last = now
	}
	if len(each) == 0 {
		return nil, fmt.Errorf("too few round trips")
	}
	slices.Sort(each)
	return map[string]float64{"p50": each[len(each)/2], "p99": each[len(each)*99/100]}, nil
}

func connects(length time.Duration) (answer, error) {
	dial, listener, err := pair(1500, false, 0)
	if err != nil {
		return answer{}, err
	}
	began, core, count := time.Now(), coreSeconds(), 0
	// Well below the ports that one pair of addresses has while they are in TIME-WAIT.
	for ; time.Since(began) < length && count < 30_000; count++ {
		caller, err := dial()
		if err != nil {
			return answer{}, err
		}
		called, err := listener.Accept()
		if err != nil {
			return answer{}, err
		}
		caller.Close()
		called.Close()
	}
	rate := float64(count) / (coreSeconds() - core)
	return answer{map[string]float64{"rate": rate}, "one address pair, TIME-WAIT of 60 s, nothing else open; GOMAXPROCS 1, " +
		"pipe link"}, nil
}

func memoryPerConnection() (answer, error) {
	warm, _, err := two(1500, false, 0, 10)
	if err != nil {
		return answer{}, err
	}
	before := heapBytes()
	callers, called, err := two(1500, false, 0, idleConnections)
	if err != nil {
		return answer{}, err
	}
	time.Sleep(100 * time.Millisecond)
	each := float64(heapBytes()-before) / (2 * idleConnections)
	runtime.KeepAlive([][]net.Conn{warm, callers, called})
	settings := fmt.Sprintf("growth of the heap after collection, for each end of %d connections", idleConnections)
	return answer{map[string]float64{"bytes": each}, settings}, nil
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc + stats.StackInuse
}
