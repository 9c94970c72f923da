package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	device = "bench"
	// gsoBytes is the largest segment that is left to the kernel to cut.
	gsoBytes = 65536
	// comingUp is what the kernel takes to bring up a device that somebody has attached to; until then it sends nothing.
	comingUp = 100 * time.Millisecond

	consumerPort      = 9
	costOfADatagram   = 20 * time.Microsecond
	datagramsAnAnswer = 32
)

// onLink measures at one end of a link whose other end is the kernel's.
func onLink(link, load string, length time.Duration) (answer, error) {
	endpoint, settings, err := open(link)
	if err != nil {
		return answer{}, err
	}
	s, err := host(endpoint, address(10, 9, 0, 2), 0)
	if err != nil {
		return answer{}, err
	}
	said := answer{map[string]float64{}, "CUBIC, SACK, RACK, timestamps, moderated buffers; " + settings}
	time.Sleep(comingUp)
	began := time.Now()
	switch load {
	case "send":
		conn, err := dial(s, 9)
		if err != nil {
			return answer{}, err
		}
		go fill(conn)
	case "receive":
		conn, err := dial(s, 10)
		if err != nil {
			return answer{}, err
		}
		go drain(conn, new(atomic.Uint64))
	case "echo":
		conn, err := dial(s, 7)
		if err != nil {
			return answer{}, err
		}
		said.Figures, err = echoes(conn, length, 1)
		return said, err
	case "consume":
		at := tcpip.FullAddress{NIC: nic, Port: consumerPort}
		conn, err := gonet.DialUDP(s, &at, nil, ipv4.ProtocolNumber)
		if err != nil {
			return answer{}, err
		}
		go consume(conn)
	default:
		return answer{}, fmt.Errorf("%q is no load", load)
	}
	time.Sleep(length - time.Since(began))
	return said, nil
}

// consume takes a declared time for each datagram, and says after every so many how many it has had.
func consume(conn *gonet.UDPConn) {
	place, said := make([]byte, 2048), make([]byte, 8)
	for count := uint64(1); ; count++ {
		_, from, err := conn.ReadFrom(place)
		if err != nil {
			return
		}
		for began := time.Now(); time.Since(began) < costOfADatagram; {
		}
		if count%datagramsAnAnswer == 0 {
			binary.BigEndian.PutUint64(said, count)
			conn.WriteTo(said, from)
		}
	}
}

func dial(s *stack.Stack, port uint16) (net.Conn, error) {
	within, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	at := tcpip.FullAddress{NIC: nic, Addr: address(10, 9, 0, 1), Port: port}
	return gonet.DialContextTCP(within, s, at, ipv4.ProtocolNumber)
}

// open is the device as a link of the stack, and how it is used.
func open(link string) (stack.LinkEndpoint, string, error) {
	switch link {
	case "tun-plain":
		fd, err := tun.Open(device)
		if err != nil {
			return nil, "", err
		}
		endpoint, err := fdbased.New(&fdbased.Options{FDs: []int{fd}, MTU: 1500})
		return endpoint, "fdbased on TUN", err
	case "packet-offload":
		return packetSocket()
	}
	return nil, "", fmt.Errorf("%q is no link of this one", link)
}

// packetSocket is how runsc meets a veth: frames and virtio headers through a packet socket, in which the kernel leaves
// many frames at a time.
func packetSocket() (stack.LinkEndpoint, string, error) {
	own, err := net.InterfaceByName(device)
	if err != nil {
		return nil, "", err
	}
	const everything = uint16(unix.ETH_P_ALL)<<8 | uint16(unix.ETH_P_ALL)>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(everything))
	if err != nil {
		return nil, "", fmt.Errorf("packet socket: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return nil, "", fmt.Errorf("virtio headers: %w", err)
	}
	for _, buffer := range []int{unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, buffer, 4<<20); err != nil {
			return nil, "", fmt.Errorf("buffers: %w", err)
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: own.Index}); err != nil {
		return nil, "", fmt.Errorf("bind: %w", err)
	}
	endpoint, err := fdbased.New(&fdbased.Options{
		FDs: []int{fd}, MTU: 1500, EthernetHeader: true, Address: tcpip.LinkAddress(own.HardwareAddr),
		GSOMaxSize: gsoBytes, RXChecksumOffload: true,
		PacketDispatchMode: fdbased.RecvMMsg, GRO: true,
	})
	return endpoint, "fdbased by RecvMMsg on a packet socket, host GSO, GRO", err
}
