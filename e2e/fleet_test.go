package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast/holdfast/interim/redis/redistest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// fleet is a Holdfast of roles apart: Registry, brokers and workers are processes of the built
// binary, with a Redis and two shared folders. What a holdfast does, it does: its client commands
// go to the first Registry, and checkInvariants looks into its database, its Redis and its folders.
//
// A process is called by its role and number: "registry" 0, "broker" 1, and a worker by its stages,
// "download" 0.
type fleet struct {
	*holdfast
	procs    map[string]*process
	postgres *postgrestest.Server // nil: the Registry is on SQLite
	cache    *redistest.Server
	proxies  map[string]*proxy // by what is behind them
	binary   string
}

// fleetSpec is the composition of a fleet.
type fleetSpec struct {
	registries int      // 0: one; more need PostgreSQL
	brokers    int      // 0: one
	workers    []string // one process each, of a stage or several with commas between them; nil: everyStage
	postgres   bool
	env        []string                                       // of all processes
	binary     string                                         // that they run; "": the program under test
	client     string                                         // whose commands ask and set up; "": the program under test
	s3         bool                                           // staging and storage are in S3, not in shared folders
	inFront    func(*s3test.Server) (staging, storage string) // with s3: starts what is in front of the server; nil: nothing
	proxied    bool                                           // workers and Registry reach what they need through proxies, and brokers by name
}

// everyStage has a process for each stage that deposits and acts need here, and two for downloads.
// Virus scans would need a clamd.
var everyStage = func() []string {
	names := []string{string(registry.Download)}
	for _, stage := range append(registry.DepositStages(), registry.Apply, registry.Cleanup) {
		if stage != registry.Scan {
			names = append(names, string(stage))
		}
	}
	return names
}()

// newFleet starts a fleet and stops it at the end of the test.
func newFleet(t *testing.T, spec fleetSpec) *fleet {
	t.Helper()
	f := &fleet{holdfast: &holdfast{t: t, dir: t.TempDir(), client: spec.client, env: append([]string{"HOLDFAST_NET_ALLOW=127.0.0.1"}, spec.env...)}, procs: map[string]*process{}, binary: cmp.Or(spec.binary, binary)}
	via := func(_, address string) string { return address }
	if spec.proxied {
		f.proxies = map[string]*proxy{}
		via = func(what, address string) string {
			f.proxies[what] = newProxy(t, address)
			return f.proxies[what].addr()
		}
	}
	f.cache = redistest.Start(t, "--appendonly", "yes")
	f.redis = f.cache.URL()
	places := map[string]string{}
	if spec.s3 {
		server := s3test.Start(t)
		f.bucket, f.env = server, append(f.env, s3test.Env()...)
		endpoint := "http://" + via("s3", strings.TrimPrefix(server.Endpoint, "http://"))
		for _, name := range []string{"staging", "storage"} {
			places[name] = s3test.Address(endpoint, name)
		}
		if spec.inFront != nil {
			places["staging"], places["storage"] = spec.inFront(server)
		}
	} else {
		for _, name := range []string{"staging", "storage"} {
			if err := os.Mkdir(f.place(name), 0o755); err != nil {
				t.Fatal(err)
			}
			places[name] = "file://" + f.place(name)
		}
	}
	f.database = ""
	address := "sqlite:" + filepath.Join(f.dir, "registry.db")
	if spec.postgres {
		f.postgres = postgrestest.Start(t)
		f.database = f.postgres.Schema(t)
		address = f.database
	}
	var lookups, nsqds []string
	for n := range max(1, spec.brokers) {
		tcp, http := freeAddress(t), freeAddress(t)
		lookups, nsqds = append(lookups, http), append(nsqds, via(fmt.Sprint("broker ", n), tcp))
		f.add("broker", n, nil, "broker", "--tcp-address", tcp, "--http-address", http)
	}
	shared := []string{
		"HOLDFAST_STAGING_URL=" + places["staging"], "HOLDFAST_STORAGE_URL=" + places["storage"],
		"HOLDFAST_NSQLOOKUPD_ADDRS=" + strings.Join(lookups, ","),
	}
	if spec.proxied { // a lookup answers with the broker's own address
		shared[len(shared)-1] = "HOLDFAST_NSQD_ADDR=" + strings.Join(nsqds, ",")
	}
	var registries, apis []string
	for n := range max(1, spec.registries) {
		listen := freeAddress(t)
		registries, apis = append(registries, "http://"+listen), append(apis, "http://"+via(fmt.Sprint("registry ", n), listen))
		f.add("registry", n, append([]string{"HOLDFAST_DATABASE_URL=" + address, "HOLDFAST_LISTEN=" + listen, "HOLDFAST_RECEIPT_KEY=" + receiptKey}, shared...), "registry")
	}
	if r := f.runIn("", "migrate", "--database", address); r.code != 0 {
		t.Fatalf("migrate ended with %d: %s", r.code, r.stderr)
	}
	f.writeClient(registries[0], f.secret("--name", "admin", "--role", "admin", "--database="+address))
	t.Cleanup(f.end)
	f.startAll()
	cache := "redis://" + via("redis", strings.TrimSuffix(strings.TrimPrefix(f.redis, "redis://"), "/0")) + "/0"
	workers := spec.workers
	if workers == nil {
		workers = everyStage
	}
	for i, stages := range workers {
		n := len(slices.DeleteFunc(slices.Clone(workers[:i]), func(s string) bool { return s != stages }))
		token := f.secret("--name", fmt.Sprintf("worker %s %d", stages, n), "--role", "worker", "--stage", stages, "--dir", f.dir)
		f.add(stages, n, append([]string{
			"HOLDFAST_URL=" + apis[i%len(apis)], "HOLDFAST_TOKEN=" + token, "HOLDFAST_REDIS_URL=" + cache, "HOLDFAST_LISTEN=127.0.0.1:0",
		}, shared...), append([]string{"worker"}, strings.Split(stages, ",")...)...)
	}
	f.startAll()
	return f
}

// receiptKey signs the receipts of all fleets.
const receiptKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// add makes a process that is not started yet.
func (f *fleet) add(role string, n int, env []string, args ...string) {
	// No machine that these tests run on is to be looked for as one of EC2.
	// S3 is told whose requests they are.
	env = append([]string{"AWS_EC2_METADATA_DISABLED=true", "AWS_SDK_UA_APP_ID=" + role}, env...)
	name := fmt.Sprintf("%s %d", role, n)
	f.procs[name] = &process{t: f.t, name: name, binary: f.binary, args: args, env: append(f.environment(), env...)}
}

// secret makes a token.
func (f *fleet) secret(args ...string) string {
	f.t.Helper()
	r := f.runIn("", append([]string{"token", "create"}, args...)...)
	if r.code != 0 {
		f.t.Fatalf("token create %v ended with %d: %s", args, r.code, r.stderr)
	}
	return strings.TrimSpace(r.stdout)
}

// writeClient writes the client file, so that commands with --dir find the Registry.
func (f *fleet) writeClient(url, token string) {
	f.t.Helper()
	raw, err := json.Marshal(map[string]string{"url": url, "token": token})
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "client.json"), raw, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// end stops what runs, the workers first, and shows the logs of a test that failed.
func (f *fleet) end() {
	f.stopAll()
	if !f.t.Failed() {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.procs)) {
		f.t.Logf("log of %s:\n%s", name, f.procs[name].log())
	}
}

// startAll starts every process that does not run, side by side, and waits until all are ready.
func (f *fleet) startAll() {
	f.t.Helper()
	var begun []*process
	for _, p := range f.procs {
		if !p.running() {
			p.begin()
			begun = append(begun, p)
		}
	}
	for _, p := range begun {
		p.await()
	}
}

// stopAll stops all running processes: workers, then the Registry, then brokers. Each must end by
// itself and cleanly.
func (f *fleet) stopAll() {
	f.t.Helper()
	for r := range 3 {
		var group []*process
		for name, p := range f.procs {
			if rank(name) == r && p.running() {
				p.send(syscall.SIGTERM)
				group = append(group, p)
			}
		}
		for _, p := range group {
			p.endsWell()
		}
	}
}

// rank orders processes by when they are to be stopped.
func rank(name string) int {
	switch {
	case strings.HasPrefix(name, "broker "):
		return 2
	case strings.HasPrefix(name, "registry "):
		return 1
	}
	return 0
}

// proc is a process by its role and number.
func (f *fleet) proc(role string, n int) *process {
	f.t.Helper()
	p := f.procs[fmt.Sprintf("%s %d", role, n)]
	if p == nil {
		f.t.Fatalf("the fleet has no %s %d", role, n)
	}
	return p
}

// workers are the processes that are workers, by name.
func (f *fleet) workers() (out []*process) {
	for _, name := range slices.Sorted(maps.Keys(f.procs)) {
		if rank(name) == 0 {
			out = append(out, f.procs[name])
		}
	}
	return out
}

// process is one process of the built binary that can be ended and started again. Its methods are
// for one goroutine at a time.
type process struct {
	t      *testing.T
	name   string
	binary string
	args   []string
	env    []string
	cmd    *exec.Cmd
	ended  chan error // has how it ended, once it has
	first  chan string
	words  map[string]string // of its first line
	logs   []*logText        // one for each start
}

// running reports whether it was started and not yet waited for.
func (p *process) running() bool { return p.cmd != nil }

// start starts it and waits until it is ready.
func (p *process) start() {
	p.t.Helper()
	p.begin()
	p.await()
}

func (p *process) begin() {
	p.t.Helper()
	if p.running() {
		p.t.Fatalf("%s runs already", p.name)
	}
	cmd := exec.Command(p.binary, p.args...)
	cmd.Env = p.env
	log := &logText{}
	p.logs = append(p.logs, log)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended, first := make(chan error, 1), make(chan string, 1)
	p.cmd, p.ended, p.first = cmd, ended, first
	go func() {
		lines := bufio.NewScanner(out)
		if lines.Scan() {
			first <- lines.Text()
		}
		for lines.Scan() {
		}
		ended <- cmd.Wait()
	}()
}

func (p *process) await() {
	p.t.Helper()
	select {
	case line := <-p.first:
		p.words = map[string]string{}
		for _, word := range strings.Fields(line) {
			if name, value, ok := strings.Cut(word, "="); ok {
				p.words[name] = value
			}
		}
	case err := <-p.ended:
		p.ended <- err
		p.t.Fatalf("%s ended before it was ready: %v\n%s", p.name, err, p.log())
	case <-time.After(patience):
		p.t.Fatalf("%s is not ready after %s\n%s", p.name, patience, p.log())
	}
}

// send sends a signal without waiting. It does nothing to an ended process.
func (p *process) send(s os.Signal) {
	p.t.Helper()
	if !p.running() {
		return
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("send %v to %s: %v", s, p.name, err)
	}
}

// wait waits for the process's end and returns how it ended.
func (p *process) wait() error {
	p.t.Helper()
	if !p.running() {
		p.t.Fatalf("%s does not run", p.name)
	}
	select {
	case err := <-p.ended:
		p.cmd = nil
		return err
	case <-time.After(patience):
		p.cmd.Process.Kill()
		p.cmd = nil
		p.t.Fatalf("%s does not end\n%s", p.name, p.log())
		return nil
	}
}

// kill ends it as a power cut would.
func (p *process) kill() {
	p.t.Helper()
	p.send(syscall.SIGKILL)
	if err := p.wait(); err == nil {
		p.t.Errorf("%s ended cleanly when it was killed", p.name)
	}
}

// stop ends it by SIGTERM and returns how long that took. It must end cleanly. It does nothing to
// an ended process.
func (p *process) stop() time.Duration {
	p.t.Helper()
	if !p.running() {
		return 0
	}
	begun := time.Now()
	p.send(syscall.SIGTERM)
	p.endsWell()
	return time.Since(begun)
}

// endsWell waits for its end, which must be a clean one.
func (p *process) endsWell() {
	p.t.Helper()
	if err := p.wait(); err != nil {
		p.t.Errorf("%s ended with %v\n%s", p.name, err, p.log())
	}
}

// restart kills it and starts it again.
func (p *process) restart() {
	p.t.Helper()
	p.kill()
	p.start()
}

// log returns its log since the last start, or since the first.
func (p *process) log() string {
	var all strings.Builder
	for i, l := range p.logs {
		if i > 0 {
			fmt.Fprintf(&all, "--- start %d\n", i+1)
		}
		all.WriteString(l.String())
	}
	return all.String()
}

// ports are below those that the kernel gives to connections, so that a process keeps its address
// over restarts.
var ports atomic.Int64

// freeAddress returns a free loopback address that no other test gets.
func freeAddress(t *testing.T) string {
	t.Helper()
	const lowest, highest = 20_000, 32_000
	for range highest - lowest {
		n := (int64(os.Getpid())*97 + ports.Add(1)) % (highest - lowest)
		address := fmt.Sprintf("127.0.0.1:%d", lowest+n)
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		l.Close()
		return address
	}
	t.Fatal("no port is free")
	return ""
}
