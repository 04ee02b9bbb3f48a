package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// scaleVariable says how much a run against a fleet submits: 20 jobs and three batches for each.
const (
	scaleVariable = "CHAOS_SCALE"
	defaultScale  = 1
)

// chaosFleet is as many processes as find room on two cores, several of each kind.
var chaosFleet = []string{
	"expand,report,apply,cleanup", "estimate,provision,notify", "estimate,provision,notify",
	"download", "download", "process,record", "process,record",
}

// TestChaos_Fleet is TestChaos with separate roles. Any process is killed, stopped, or paused for
// longer than a lease; connections are cut; Redis loses its data or is away; NSQ loses messages;
// the staging volume fills up; PostgreSQL is killed; the clocks of Registry and workers differ; the
// source misbehaves. In the end everything has completed exactly once, every byte is there, and
// nothing is left over. The seed also chooses database and storage.
func TestChaos_Fleet(t *testing.T) {
	seed, faults, scale := uint64(time.Now().UnixNano()), uint64(defaultFaults), uint64(defaultScale)
	fromEnvironment(t, map[string]*uint64{seedVariable: &seed, faultsVariable: &faults, scaleVariable: &scale})
	t.Logf("replay with %s=%d %s=%d %s=%d", seedVariable, seed, faultsVariable, faults, scaleVariable, scale)
	c := newFleetChaos(t, seed, int(scale))
	// The object that is updated must be there: which of two submissions gets to its locks first is
	// not what is looked at.
	if first, code := c.submit(c.source.url+"/update0.bin", "--local-id", "updated", "--type", "file"); code != 0 {
		t.Fatalf("exit=%d summary=%+v", code, first)
	}
	begun := time.Now()
	c.underFaults(10*patience, faults, func() {
		c.fault()
		c.hurry(c.offset)
	})
	last := time.Now()
	c.finish()
	settled := time.Since(last).Round(time.Millisecond)
	c.checkObjects()
	c.fleet.stopAll()
	c.checkInvariants()
	c.checkVersions()
	c.tell(time.Since(begun), settled)
}

// fleetChaos is a run against roles apart.
type fleetChaos struct {
	*chaos
	fleet  *fleet
	full   string        // while there is this file, the staging volume is full
	offset time.Duration // how far the Registry's clock is ahead
	hits   []hit
}

// hit is a fault that took a worker's leases away.
type hit struct {
	at     time.Time // by the Registry's clock
	worker string
}

func newFleetChaos(t *testing.T, seed uint64, scale int) *fleetChaos {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	c := &fleetChaos{full: filepath.Join(t.TempDir(), "full")}
	spec := fleetSpec{brokers: 2, workers: chaosFleet, binary: chaosBinary(t), proxied: true, env: []string{
		"HOLDFAST_MAX_ATTEMPTS=1000", "HOLDFAST_LEASE=" + chaosLease.String(), "CHAOS_STAGING_FULL=" + c.full,
	}}
	if rng.IntN(2) == 0 {
		spec.postgres, spec.registries = true, 2
	} else {
		c.offset = time.Duration(rng.IntN(2000)-1000) * time.Hour
		spec.env = append(spec.env, "CHAOS_CLOCK_OFFSET="+c.offset.String())
	}
	spec.s3 = rng.IntN(2) == 0
	source := newChaosSourceOf(t, seed, scale)
	c.fleet = newFleet(t, spec)
	c.chaos = &chaos{holdfast: c.fleet.holdfast, source: source, rng: rng, injected: map[string]int{}, next: make(chan struct{}, payloads)}
	return c
}

// fault lets the fleet run for a moment and does something to it.
func (c *fleetChaos) fault() {
	time.Sleep(time.Duration(c.rng.IntN(300)) * time.Millisecond) // the moment of the fault: whatever it hits must stand it
	kinds := []struct {
		name   string
		weight int
		strike func()
	}{
		{"SIGKILL of a worker", 8, func() { c.strike(c.pick(c.fleet.workers()), (*process).restart) }},
		{"SIGKILL of a registry", 3, func() { c.pick(c.of("registry")).restart() }},
		{"SIGKILL of a broker (NSQ wiped)", 2, func() { c.pick(c.of("broker")).restart() }},
		{"SIGTERM of a worker", 4, func() { c.again(c.pick(c.fleet.workers())) }},
		{"SIGTERM of a registry", 1, func() { c.again(c.pick(c.of("registry"))) }},
		{"SIGTERM twice", 2, func() { c.twice(c.pick(c.fleet.workers())) }},
		{"worker paused beyond its lease", 3, func() { c.strike(c.pick(c.fleet.workers()), c.pause) }},
		{"registry paused", 1, func() { c.pause(c.pick(c.of("registry"))) }},
		{"connections cut", 5, func() { c.pickProxy().cut() }},
		{"service out of reach", 2, c.outage},
		{"Redis wiped", 1, c.fleet.wipeRedis},
		{"Redis killed", 1, func() { c.fleet.cache.Kill(); c.nap(time.Second); c.fleet.cache.Restart() }},
		{"staging volume full", 2, c.fill},
	}
	if c.fleet.postgres != nil {
		kinds = append(kinds, struct {
			name   string
			weight int
			strike func()
		}{"PostgreSQL killed", 1, func() { c.fleet.postgres.Kill(); c.nap(time.Second); c.fleet.postgres.Restart(c.t) }})
	}
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}
	n := c.rng.IntN(sum)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			c.injected[k.name]++
			k.strike()
			return
		}
	}
}

// nap lets a fault last, for up to d.
func (c *fleetChaos) nap(d time.Duration) { time.Sleep(time.Duration(c.rng.Int64N(int64(d)))) }

func (c *fleetChaos) pick(among []*process) *process { return among[c.rng.IntN(len(among))] }

func (c *fleetChaos) pickProxy() *proxy {
	names := slices.Sorted(maps.Keys(c.fleet.proxies))
	return c.fleet.proxies[names[c.rng.IntN(len(names))]]
}

// of are the processes of a role.
func (c *fleetChaos) of(role string) (out []*process) {
	for _, name := range slices.Sorted(maps.Keys(c.fleet.procs)) {
		if strings.HasPrefix(name, role+" ") {
			out = append(out, c.fleet.procs[name])
		}
	}
	return out
}

// strike does something to a worker that takes its leases away.
func (c *fleetChaos) strike(p *process, do func(*process)) {
	c.hits = append(c.hits, hit{time.Now().Add(c.offset), p.words["id"]})
	do(p)
}

// again tells a process to stop, which it must do cleanly, and starts it again.
func (c *fleetChaos) again(p *process) {
	p.stop()
	p.start()
}

// twice tells a process to stop and, before it has, a second time.
func (c *fleetChaos) twice(p *process) {
	c.hits = append(c.hits, hit{time.Now().Add(c.offset), p.words["id"]})
	p.send(syscall.SIGTERM)
	time.Sleep(time.Duration(c.rng.IntN(20)) * time.Millisecond) // the second signal comes anywhere within the drain
	p.send(syscall.SIGTERM)
	_ = p.wait() // it may have been done already
	p.start()
}

// pause stops a process for longer than any lease. Its writes must be refused when it continues.
func (c *fleetChaos) pause(p *process) {
	p.send(syscall.SIGSTOP)
	time.Sleep(chaosLease + chaosLease/4) // longer than any lease
	p.send(syscall.SIGCONT)
}

// outage makes a service unreachable for a moment.
func (c *fleetChaos) outage() {
	p := c.pickProxy()
	p.outage(true)
	c.nap(2 * chaosLease)
	p.outage(false)
}

// fill makes the staging volume full for a moment.
func (c *fleetChaos) fill() {
	if err := os.WriteFile(c.full, nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.nap(time.Second)
	if err := os.Remove(c.full); err != nil {
		c.t.Fatal(err)
	}
}

// finish waits until nothing is open. Data of superseded workers is removed once they can write no
// more.
func (c *fleetChaos) finish() {
	c.t.Helper()
	c.await(`SELECT id FROM work_item WHERE status IN ('pending', 'running') AND NOT (` + late + `)`)
	time.Sleep(chaosLease) // in which every worker has heard that its claims are gone
	c.query("registry.db", `UPDATE work_item SET run_at = $1, nudge_at = $1 WHERE `+late+` RETURNING id`, time.Now().Add(c.offset).UnixMicro())
	c.await(`SELECT id FROM work_item WHERE status IN ('pending', 'running')`)
}

// await waits until a statement finds nothing.
func (c *fleetChaos) await(open string) {
	c.t.Helper()
	deadline := time.Now().Add(5 * patience)
	left := c.query("registry.db", open)
	for ; len(left) > 0 && time.Now().Before(deadline); left = c.query("registry.db", open) {
		c.hurry(c.offset)
		time.Sleep(100 * time.Millisecond) // polls
	}
	for _, id := range left[:min(len(left), 5)] {
		c.t.Errorf("still open: %s%s", c.run("item", "why", id).stdout, c.run("item", "history", id).stdout)
	}
}

// tell prints what was done and what it cost.
func (c *fleetChaos) tell(took, settled time.Duration) {
	var table strings.Builder
	line := func(what string, value any) { fmt.Fprintf(&table, "  %-34s %v\n", what, value) }
	database := "PostgreSQL, two registries"
	if c.fleet.postgres == nil {
		database = fmt.Sprintf("SQLite, its clock off by %v", c.offset)
	}
	line("database", database)
	line("bytes in", map[bool]string{true: "S3", false: "shared folders"}[c.bucket != nil])
	line("items", c.count(`SELECT COUNT(*) FROM work_item`))
	sum := 0
	for _, kind := range slices.Sorted(maps.Keys(c.injected)) {
		line(kind, c.injected[kind])
		sum += c.injected[kind]
	}
	line("faults in all", sum)
	for _, kind := range slices.Sorted(maps.Keys(c.source.wrong)) {
		line("source: "+kind, c.source.wrong[kind])
	}
	line("source: answers in all", c.source.asked)
	for _, row := range c.query("registry.db", `SELECT outcome, COUNT(*) FROM attempt GROUP BY outcome ORDER BY outcome`) {
		outcome, n, _ := strings.Cut(row, "|")
		line("attempts: "+outcome, n)
	}
	lost, next := c.recoveries()
	line(fmt.Sprintf("taken back (lease %v)", chaosLease), spread(lost))
	line("gone on with", spread(next))
	all, most := c.source.retransferred()
	line("sent again", fmt.Sprintf("%.1f MiB in all, %.1f MiB of one file at most", float64(all)/(1<<20), float64(most)/(1<<20)))
	line("settled after the last fault", settled)
	line("whole run", took.Round(time.Second))
	c.t.Logf("\n%s", table.String())
}

// recoveries are the times from the faults that took leases away until the Registry took the items
// back, and until the next worker had them.
func (c *fleetChaos) recoveries() (lost, next []time.Duration) {
	for _, row := range c.query("registry.db", `SELECT a.worker, a.started_at, a.finished_at, MIN(b.started_at) FROM attempt a
		JOIN attempt b ON b.item_id = a.item_id AND b.n > a.n WHERE a.outcome = 'lost' GROUP BY a.item_id, a.n, a.worker, a.started_at, a.finished_at`) {
		fields := strings.Split(row, "|")
		var at [3]time.Time
		for i := range at {
			micros, err := strconv.ParseInt(fields[i+1], 10, 64)
			if err != nil {
				c.t.Fatal(err)
			}
			at[i] = time.UnixMicro(micros)
		}
		for _, h := range c.hits {
			if h.worker == fields[0] && h.at.After(at[0]) && h.at.Before(at[1]) {
				lost, next = append(lost, at[1].Sub(h.at)), append(next, at[2].Sub(h.at))
				break
			}
		}
	}
	return lost, next
}

// spread is the median and the longest of some times.
func spread(times []time.Duration) string {
	if len(times) == 0 {
		return "none"
	}
	slices.Sort(times)
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	return fmt.Sprintf("median %v, longest %v, of %d", round(times[len(times)/2]), round(times[len(times)-1]), len(times))
}

var chaosBuild struct {
	sync.Once
	path string
	err  error
}

// chaosBinary is a build that faults can be injected into, made once.
func chaosBinary(t *testing.T) string {
	t.Helper()
	chaosBuild.Do(func() {
		chaosBuild.path = binary + "-chaos"
		build := exec.Command("go", "build", "-tags", "chaos", "-ldflags", "-s -w", "-o", chaosBuild.path, "../cmd/holdfast")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			chaosBuild.err = fmt.Errorf("build holdfast with faults: %w\n%s", err, out)
		}
	})
	if chaosBuild.err != nil {
		t.Fatal(chaosBuild.err)
	}
	return chaosBuild.path
}
