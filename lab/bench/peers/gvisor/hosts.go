package main

import (
	"fmt"
	"net"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/pipe"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

const nic = 1

// trusted is an end of a pipe where checksums are neither made nor looked at.
type trusted struct{ *pipe.Endpoint }

func (trusted) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityTXChecksumOffload | stack.CapabilityRXChecksumOffload
}

// host makes a stack with one address on one link. SACK and CUBIC are on, as far as bufferBytes is not 0 the buffers
// have that size and stay so.
func host(link stack.LinkEndpoint, address tcpip.Address, bufferBytes int) (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
		HandleLocal:        false,
	})
	sack, cubic := tcpip.TCPSACKEnabled(true), tcpip.CongestionControlOption("cubic")
	options := []tcpip.SettableTransportProtocolOption{&sack, &cubic}
	if bufferBytes != 0 {
		n, moderate := bufferBytes, tcpip.TCPModerateReceiveBufferOption(false)
		options = append(options, &moderate,
			&tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: n, Max: n},
			// As much again for what is counted beside the data.
			&tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: 2 * n, Max: 2 * n})
	}
	for _, option := range options {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return nil, fmt.Errorf("option %T: %v", option, err)
		}
	}
	if err := s.CreateNIC(nic, link); err != nil {
		return nil, fmt.Errorf("link: %v", err)
	}
	at := tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: address, PrefixLen: 24},
	}
	if err := s.AddProtocolAddress(nic, at, stack.AddressProperties{}); err != nil {
		return nil, fmt.Errorf("address: %v", err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return s, nil
}

func address(a, b, c, d byte) tcpip.Address { return tcpip.AddrFrom4([4]byte{a, b, c, d}) }

// pair is two hosts at both ends of a pipe: how to call from one to the other, and where calls are accepted.
func pair(mtu uint32, withoutChecksums bool, bufferBytes int) (func() (*gonet.TCPConn, error), *gonet.TCPListener, error) {
	near, far := pipe.New("", "", mtu)
	links := [2]stack.LinkEndpoint{near, far}
	if withoutChecksums {
		links = [2]stack.LinkEndpoint{trusted{near}, trusted{far}}
	}
	a, err := host(links[0], address(10, 0, 0, 1), bufferBytes)
	if err != nil {
		return nil, nil, err
	}
	b, err := host(links[1], address(10, 0, 0, 2), bufferBytes)
	if err != nil {
		return nil, nil, err
	}
	at := tcpip.FullAddress{NIC: nic, Addr: address(10, 0, 0, 2), Port: 80}
	listener, err := gonet.ListenTCP(b, at, ipv4.ProtocolNumber)
	return func() (*gonet.TCPConn, error) { return gonet.DialTCP(a, at, ipv4.ProtocolNumber) }, listener, err
}

// two are n connections between such hosts.
func two(mtu uint32, withoutChecksums bool, bufferBytes, n int) (callers, called []net.Conn, err error) {
	dial, listener, err := pair(mtu, withoutChecksums, bufferBytes)
	if err != nil {
		return nil, nil, err
	}
	for range n {
		caller, err := dial()
		if err != nil {
			return nil, nil, err
		}
		accepted, err := listener.Accept()
		if err != nil {
			return nil, nil, err
		}
		callers, called = append(callers, caller), append(called, accepted)
	}
	return callers, called, nil
}
