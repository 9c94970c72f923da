// Frames of a TCP flow, written to a TUN device without any stack: what the system calls allow. The handshake is made by
// hand; then full segments leave from a table of prebuilt frames, of which only sequence number, acknowledgment and
// checksum are patched, as fast as the kernel's window allows. What comes back is read and looked at no further than its
// acknowledgment number.

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
	IP_BYTES = 20,
	TCP_BYTES = 32,  // with timestamps
	PAYLOAD_BYTES = 1500 - IP_BYTES - TCP_BYTES,
	FRAMES = 64,     // in the table
	FRAMES_A_LOOK = 32,
	OWN_PORT = 50000,
	SINK_PORT = 9,
	WINDOW_SHIFT = 7,
	// No more than this is under way: more leaves the cache.
	WINDOW_BYTES = 512 << 10,
};

static unsigned char frames[FRAMES][1500];
static int tun;
static uint32_t sent, acknowledged, window, heard;
static unsigned shift;

static void fail(const char *why)
{
	fprintf(stderr, "inhost-bench-bare: %s: %s\n", why, strerror(errno));
	exit(1);
}

static double now_s(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

static void put16(unsigned char *at, uint16_t value)
{
	value = htons(value);
	memcpy(at, &value, 2);
}

static void put32(unsigned char *at, uint32_t value)
{
	value = htonl(value);
	memcpy(at, &value, 4);
}

static uint16_t get16(const unsigned char *at)
{
	return at[0] << 8 | at[1];
}

static uint32_t get32(const unsigned char *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static uint32_t sum_of(const unsigned char *at, unsigned bytes)
{
	uint32_t sum = 0;
	for (unsigned n = 0; n + 1 < bytes; n += 2)
		sum += get16(at + n);
	return bytes & 1 ? sum + (at[bytes - 1] << 8) : sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

// Headers of a frame of `bytes`, with room for options, and both checksums.
static void finish(unsigned char *frame, unsigned bytes, unsigned tcp_bytes, unsigned flags)
{
	unsigned char *tcp = frame + IP_BYTES;
	memcpy(frame, "\x45\0\0\0\0\0\x40\0\x40\x06\0\0\x0a\x09\0\x02\x0a\x09\0\x01", IP_BYTES);
	put16(frame + 2, bytes);
	put16(frame + 10, ~fold(sum_of(frame, IP_BYTES)));
	put16(tcp, OWN_PORT);
	put16(tcp + 2, SINK_PORT);
	put32(tcp + 4, sent);
	put32(tcp + 8, heard);
	tcp[12] = tcp_bytes / 4 << 4;
	tcp[13] = flags;
	put16(tcp + 14, 0xffff);
	put16(tcp + 16, 0);
	uint32_t pseudo = sum_of(frame + 12, 8) + 6 + bytes - IP_BYTES;
	put16(tcp + 16, ~fold(pseudo + sum_of(tcp, bytes - IP_BYTES)));
}

static int open_tun(void)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	strcpy(request.ifr_name, "bench");
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0)
		fail("/dev/net/tun");
	return fd;
}

// Reads what has come; false when there is nothing.
static int look(void)
{
	unsigned char frame[2048];
	ssize_t length = read(tun, frame, sizeof frame);
	if (length < 0)
		return 0;
	unsigned char *tcp = frame + IP_BYTES;
	if (length < IP_BYTES + 20 || frame[9] != 6 || get16(tcp + 2) != OWN_PORT)
		return 1;
	if (tcp[13] & 4) {
		// The kernel's end is stopped when all is counted.
		acknowledged = sent;
		heard = 0;
		return 1;
	}
	acknowledged = get32(tcp + 8);
	window = (uint32_t)get16(tcp + 14) << shift;
	if (tcp[13] & 2)
		heard = get32(tcp + 4) + 1;
	return 1;
}

static void wait_for_frame(void)
{
	struct pollfd one = { .fd = tun, .events = POLLIN };
	poll(&one, 1, 100);
}

static void handshake(void)
{
	unsigned char syn[IP_BYTES + 24] = { 0 };
	sent = 1000;
	// MSS 1460, window scale and an empty place; without timestamps a segment carries as much as with them here.
	memcpy(syn + IP_BYTES + 20, "\x01\x03\x03", 3);
	syn[IP_BYTES + 23] = WINDOW_SHIFT;
	finish(syn, sizeof syn, 24, 2);
	for (double until = now_s() + 5; heard == 0 && now_s() < until;) {
		if (write(tun, syn, sizeof syn) < 0 && errno != EIO)
			fail("SYN");
		wait_for_frame();
		while (look())
			;
	}
	if (heard == 0)
		fail("no answer to the SYN");
	// The kernel's own shift stands in its answer; this one is what it takes by default with six megabytes.
	shift = WINDOW_SHIFT;
	sent++;
}

int main(int count, char **words)
{
	double length = count == 3 ? atof(words[2]) : 0;
	if (length <= 0 || strcmp(words[1], "tun-plain:send") != 0) {
		fprintf(stderr, "usage: inhost-bench-bare tun-plain:send SECONDS\n");
		return 2;
	}
	tun = open_tun();
	// The kernel takes a moment to bring up a device that somebody has attached to; until then it sends nothing.
	usleep(100000);
	double until = now_s() + length;
	handshake();
	for (unsigned n = 0; n < FRAMES; n++) {
		memset(frames[n], 0x5a, sizeof frames[n]);
		memset(frames[n] + IP_BYTES + 20, 1, TCP_BYTES - 20);  // no operation, in place of timestamps
		finish(frames[n], sizeof frames[n], TCP_BYTES, 0x10);
	}
	for (unsigned n = 0; now_s() < until && heard != 0;) {
		for (unsigned many = 0; many < FRAMES_A_LOOK; many++) {
			if (sent + PAYLOAD_BYTES - acknowledged > (window < WINDOW_BYTES ? window : WINDOW_BYTES)) {
				wait_for_frame();
				break;
			}
			unsigned char *tcp = frames[n++ % FRAMES] + IP_BYTES;
			uint32_t old = fold(sum_of(tcp + 4, 4)), sum = (uint16_t)~get16(tcp + 16);
			put32(tcp + 4, sent);
			put16(tcp + 16, ~fold(sum + (uint16_t)~old + sum_of(tcp + 4, 4)));
			if (write(tun, tcp - IP_BYTES, 1500) == 1500)
				sent += PAYLOAD_BYTES;
		}
		while (look())
			;
	}
	printf("{\"figures\":{},\"settings\":\"prebuilt frames of 1448 bytes, one write each, %d KiB under way at most, "
	       "acknowledgments read\"}\n",
	       WINDOW_BYTES >> 10);
	return 0;
}
