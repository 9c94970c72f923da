// lwIP, as Debian builds it, under the measurements of `make bench`: one measurement a process, one line of JSON as its
// answer. The words are those of `inhost-subject`.
//
// One lwIP with two interfaces stands for two hosts: each end of a connection is tied to its interface, so that
// everything passes the wire between them, where it is copied once. The main thread holds lwIP's core lock from
// beginning to end and drives it by plain calls; lwIP's own thread never runs.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/sys.h"
#include "lwip/tcp.h"
#include "lwip/tcpip.h"
#include "lwip/timeouts.h"

enum {
	WIRE_FRAMES = 64,     // on the wire in one direction: a power of two
	PIECE_BYTES = 32768,  // of one write
	ROUNDS_A_LOOK = 16,   // between two looks at the clock
	TRIPS_A_LOOK = 16,
	TRIPS_KEPT = 1 << 20,
};

struct wire {
	struct pbuf *frames[WIRE_FRAMES];
	unsigned taken, given;
	unsigned long carried;
	struct netif *far;
};

static struct netif near_end, far_end;
static struct wire there, back;
static struct tcp_pcb *caller, *called;
static char text[PIECE_BYTES], place[65536];
static unsigned long received;
static int echoing, answered;

static void fail(const char *why)
{
	fprintf(stderr, "inhost-bench-lwip: %s\n", why);
	exit(1);
}

static double seconds_of(clockid_t clock)
{
	struct timespec at;
	clock_gettime(clock, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

// What an interface sends: a copy waits on the wire, as the other host would receive it into memory of its own.
static err_t send_frame(struct netif *from, struct pbuf *p, const ip4_addr_t *to)
{
	struct wire *wire = from == &near_end ? &there : &back;
	(void)to;
	if (wire->taken - wire->given == WIRE_FRAMES)
		return ERR_MEM;
	struct pbuf *copy = pbuf_clone(PBUF_RAW, PBUF_RAM, p);
	if (copy == NULL)
		return ERR_MEM;
	wire->frames[wire->taken++ % WIRE_FRAMES] = copy;
	wire->carried++;
	return ERR_OK;
}

static void carry(struct wire *wire)
{
	while (wire->given != wire->taken) {
		struct pbuf *p = wire->frames[wire->given++ % WIRE_FRAMES];
		if (wire->far->input(p, wire->far) != ERR_OK)
			pbuf_free(p);
	}
}

static err_t set_up(struct netif *netif)
{
	netif->mtu = 1500;
	netif->output = send_frame;
	netif->name[0] = 'w';
	netif->name[1] = netif == &near_end ? '1' : '2';
	netif->flags |= NETIF_FLAG_LINK_UP;
	return ERR_OK;
}

static err_t on_called_data(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	(void)arg, (void)err;
	if (p == NULL)
		return ERR_OK;
	pbuf_copy_partial(p, place, p->tot_len, 0);
	received += p->tot_len;
	tcp_recved(pcb, p->tot_len);
	if (echoing && (tcp_write(pcb, place, p->tot_len, TCP_WRITE_FLAG_COPY) != ERR_OK || tcp_output(pcb) != ERR_OK))
		fail("an echo was not taken");
	pbuf_free(p);
	return ERR_OK;
}

static err_t on_caller_data(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	(void)arg, (void)err;
	if (p == NULL)
		return ERR_OK;
	pbuf_copy_partial(p, place, p->tot_len, 0);
	answered += p->tot_len;
	tcp_recved(pcb, p->tot_len);
	pbuf_free(p);
	return ERR_OK;
}

static err_t on_accept(void *arg, struct tcp_pcb *pcb, err_t err)
{
	(void)arg, (void)err;
	called = pcb;
	tcp_nagle_disable(pcb);
	tcp_recv(pcb, on_called_data);
	return ERR_OK;
}

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t err)
{
	(void)arg, (void)pcb;
	return err;
}

static void started(void *arg)
{
	sys_sem_signal((sys_sem_t *)arg);
}

static void begin(void)
{
	sys_sem_t up;
	sys_sem_new(&up, 0);
	tcpip_init(started, &up);
	sys_sem_wait(&up);
	LOCK_TCPIP_CORE();
	ip4_addr_t address, mask, none;
	IP4_ADDR(&mask, 255, 255, 255, 0);
	IP4_ADDR(&none, 0, 0, 0, 0);
	IP4_ADDR(&address, 10, 0, 0, 1);
	netif_add(&near_end, &address, &mask, &none, NULL, set_up, ip_input);
	IP4_ADDR(&address, 10, 0, 0, 2);
	netif_add(&far_end, &address, &mask, &none, NULL, set_up, ip_input);
	netif_set_up(&near_end);
	netif_set_up(&far_end);
	there.far = &far_end;
	back.far = &near_end;
}

static void connect_ends(void)
{
	ip_addr_t at;
	struct tcp_pcb *listener = tcp_new_ip_type(IPADDR_TYPE_V4);
	IP_ADDR4(&at, 10, 0, 0, 2);
	if (listener == NULL || tcp_bind(listener, &at, 80) != ERR_OK)
		fail("cannot bind");
	tcp_bind_netif(listener, &far_end);
	listener = tcp_listen(listener);
	tcp_accept(listener, on_accept);
	caller = tcp_new_ip_type(IPADDR_TYPE_V4);
	tcp_nagle_disable(caller);
	tcp_bind_netif(caller, &near_end);
	tcp_recv(caller, on_caller_data);
	if (tcp_connect(caller, &at, 80, on_connected) != ERR_OK)
		fail("cannot connect");
	for (int n = 0; n < 4; n++) {
		carry(&there);
		carry(&back);
	}
	if (called == NULL)
		fail("no connection");
}

static void stream(double length)
{
	double until = seconds_of(CLOCK_MONOTONIC) + length;
	do {
		for (int n = 0; n < ROUNDS_A_LOOK; n++) {
			unsigned room = tcp_sndbuf(caller);
			if (room > 0)
				tcp_write(caller, text, room < PIECE_BYTES ? room : PIECE_BYTES, TCP_WRITE_FLAG_COPY);
			tcp_output(caller);
			carry(&there);
			carry(&back);
		}
		sys_check_timeouts();
	} while (seconds_of(CLOCK_MONOTONIC) < until);
}

static void bulk(double length)
{
	stream(length / 5);
	unsigned long bytes = received, segments = there.carried, acks = back.carried;
	double core = seconds_of(CLOCK_THREAD_CPUTIME_ID);
	stream(length);
	core = seconds_of(CLOCK_THREAD_CPUTIME_ID) - core;
	bytes = received - bytes, segments = there.carried - segments, acks = back.carried - acks;
	if (bytes == 0)
		fail("nothing came");
	printf("{\"figures\":{\"rate\":%f,\"core_seconds\":%f,\"segments\":%lu,\"bytes\":%lu},\"settings\":\"lwIP 2.1 as Debian "
	       "builds it: Reno, no SACK, no timestamps, checksum on copy, malloc; window and send buffer %u bytes, MTU 1500, one "
	       "ACK per %.1f segments\"}\n",
	       bytes * 8.0 / core / 1e9, core, segments, bytes, TCP_WND, (double)segments / (acks ? acks : 1));
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void echo(double length)
{
	double *each = malloc(TRIPS_KEPT * sizeof *each);
	double began = seconds_of(CLOCK_MONOTONIC), last = began;
	size_t count = 0;
	if (each == NULL)
		fail("no memory");
	echoing = 1;
	while (last < began + length && count < TRIPS_KEPT) {
		for (int n = 0; n < TRIPS_A_LOOK; n++) {
			answered = 0;
			if (tcp_write(caller, "x", 1, TCP_WRITE_FLAG_COPY) != ERR_OK)
				fail("a byte was not taken");
			tcp_output(caller);
			carry(&there);
			carry(&back);
			if (answered != 1)
				fail("an echo did not come");
		}
		sys_check_timeouts();
		double now = seconds_of(CLOCK_MONOTONIC);
		if (now > began + length / 5)
			each[count++] = (now - last) * 1e6 / TRIPS_A_LOOK;
		last = now;
	}
	if (count == 0)
		fail("too few round trips");
	qsort(each, count, sizeof *each, by_size);
	printf("{\"figures\":{\"p50\":%f,\"p99\":%f},\"settings\":\"lwIP 2.1 as Debian builds it; callbacks, no Nagle, timers "
	       "looked at every %d round trips, which are timed together\"}\n",
	       each[count / 2], each[count * 99 / 100], TRIPS_A_LOOK);
}

int main(int count, char **words)
{
	double length = count == 3 ? atof(words[2]) : 0;
	if (length <= 0) {
		fprintf(stderr, "usage: inhost-bench-lwip memory-bulk-1500|echo-memory|memory SECONDS\n");
		return 2;
	}
	if (strcmp(words[1], "memory") == 0) {
		printf("{\"figures\":{\"bytes\":%zu},\"settings\":\"size of a connection's block; its buffers come and go; look-up is "
		       "by search\"}\n",
		       sizeof(struct tcp_pcb));
		return 0;
	}
	begin();
	connect_ends();
	if (strcmp(words[1], "memory-bulk-1500") == 0)
		bulk(length);
	else if (strcmp(words[1], "echo-memory") == 0)
		echo(length);
	else
		fail("no such measurement");
	fflush(stdout);
	// lwIP's own thread waits for the lock that this one holds.
	_exit(0);
}
